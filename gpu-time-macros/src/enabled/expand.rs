//! Generates the tokens for a [`Plan`]. Cannot fail.
//!
//! ```text
//! Input:  fn f(stream: &Arc<CudaStream>) -> R { …leading items… …statements… }
//! Output: fn f(stream: &Arc<CudaStream>) -> R {
//!             …leading items…
//!             let scope = enter_on({ …a static site…; &__GPU_TIME_SITE }, || …the stream…, …);
//!             …statements…
//!         }
//! ```
//! The user's braces are reused and nothing is put around the statements: new braces would change when
//! temporaries are dropped, nested ones would be linted as unused, a bound result would break `-> !`,
//! and a closure would break borrows. The user's expressions are outside of the block with the generated items,
//! because hygiene does not hide items.

use proc_macro2::{Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprReference, Stmt};

use crate::enabled::func::{MARKER, SITE, tail_future};
use crate::enabled::paths::{Paths, local, ours};
use crate::enabled::plan::Plan;
use crate::enabled::source::{Stream, needed_by, no_stream, two_params};

/// Generates the function.
pub fn expand(plan: Plan) -> TokenStream {
    let prologue = prologue(&plan);
    let Plan { func, is_future, marked, .. } = plan;
    let (lead, rest) = (&func.lead, &func.rest);
    let body = match marked {
        None => quote!(#lead #prologue #rest),
        Some(stmts) if !is_future => quote!(#lead #prologue #(#stmts)*),
        Some(mut stmts) => {
            if let Some(block) = tail_future(&mut stmts) {
                let items = block.stmts.iter().take_while(|stmt| matches!(stmt, Stmt::Item(_)));
                let at = items.count();
                block.stmts.insert(at, Stmt::Expr(Expr::Verbatim(prologue), None));
            }
            quote!(#lead #(#stmts)*)
        }
    };
    let mut braces = Group::new(proc_macro2::Delimiter::Brace, body);
    braces.set_span(func.braces);
    let header = func.header;
    // Before edition 2024, this lint would warn that the scope may be dropped before the temporaries of the tail.
    let quiet = (!func.is_block)
        .then(|| quote_spanned!(Span::mixed_site()=> #[allow(tail_expr_drop_order)]));
    quote!(#quiet #header #braces)
}

/// Generates the expression that creates a guard, for a call without a body.
pub fn expand_guard(plan: &Plan) -> TokenStream {
    let at = Span::mixed_site();
    let (private, import, entered) = (plan.paths.private(at), plan.paths.import(), entered(plan));
    quote_spanned!(at=> { #import #private::Guard::new(#private::#entered) })
}

/// Generates the statement that enters the scope.
fn prologue(plan: &Plan) -> TokenStream {
    let at = Span::mixed_site();
    let private = plan.paths.private(at);
    let (scope, import, entered) = (&plan.paths.scope, plan.paths.import(), entered(plan));
    quote_spanned!(at=> #import let #scope = #private::#entered;)
}

/// Generates the call of the function that enters the scope, without its path.
fn entered(plan: &Plan) -> TokenStream {
    let at = Span::mixed_site();
    let site = site(plan);
    let details = details(plan);
    if plan.streams.is_empty() {
        return quote_spanned!(at=> enter(#site, #details));
    }
    let (source, query) = (source(plan), local("query"));
    quote_spanned!(at=> enter_on(#site, |#query| #source, #details))
}

/// Generates the block that declares the site, registers it and evaluates to a reference to it.
fn site(plan: &Plan) -> TokenStream {
    let at = Span::mixed_site();
    let private = plan.paths.private(at);
    let option = |value: Option<TokenStream>| match value {
        Some(value) => quote_spanned!(at=> #private::core::option::Option::Some(#value)),
        None => quote_spanned!(at=> #private::core::option::Option::None),
    };
    let site = format_ident!("{SITE}", span = at);
    let marker = format_ident!("{MARKER}", span = at);

    let function = plan.func.sig.ident.span();
    // `file!` and similar macros report the position of their own tokens, so their tokens get the
    // span of the function's name.
    let there = plan.paths.private(function);
    let file = quote_spanned!(function=> #there::core::file!());
    let line = quote_spanned!(function=> #there::core::line!());
    let column = quote_spanned!(function=> #there::core::column!());
    let name = option(plan.args.name.as_ref().map(|name| {
        let text = local("name");
        // The typed `let` improves the compiler's message: for a wrong type inside `Some`, it would
        // explain `Some` instead.
        quote_spanned!(at=> { let #text: &#private::core::primitive::str = #name; #text })
    }));
    let warmup = plan.args.warmup.as_ref().map_or_else(|| quote!(0), ToTokens::to_token_stream);
    let variant = |kind: &str, name: &str| {
        let [kind, name] = [kind, name].map(|name| Ident::new(name, at));
        quote_spanned!(at=> #private::#kind::#name)
    };
    // The functions that are called check the value, and their errors point at it.
    let sampling = match (&plan.args.sample, &plan.args.every) {
        (Some(share), _) => checked(plan, share, "Sampling", "share"),
        (None, Some(every)) => checked(plan, every, "Sampling", "every"),
        (None, None) => variant("Sampling", "ALL"),
    };
    let cold = option(plan.args.cold.map(|cold| variant("Cold", cold)));
    let sleep = option(plan.args.sleep.map(|time| match time {
        Some(ns) => {
            let ns = Literal::u64_unsuffixed(ns);
            quote_spanned!(at=> #private::Hold::For(#ns))
        }
        None => variant("Hold", "UntilEnqueued"),
    }));
    let scope = variant("ScopeKind", &format!("{:?}", plan.scope));
    let clock = variant("Clock", &format!("{:?}", plan.clock));
    let launches = plan.launches.iter().map(|launch| {
        let span = launch.span();
        let there = plan.paths.private(span);
        let line = quote_spanned!(span=> #there::core::line!());
        let name = launch.unraw().to_string();
        quote_spanned!(at=> #private::LaunchSpec { name: #name, line: #line })
    });
    let options = &plan.args.text;
    let remarks = plan.remark.map(|remark| variant("Remark", remark));
    let (graph, is_async, is_single) = (plan.args.graph, plan.is_async, plan.is_single);
    let takes_default = plan.is_unnamed;
    let helpers = plan.args.helpers.unwrap_or(true);
    quote_spanned! {at=> {
        fn #marker() {}
        static #site: #private::CallSite = #private::CallSite::new(#private::Spec {
            path: || #private::core::any::type_name_of_val(&#marker),
            name: #name,
            file: #file,
            line: #line,
            column: #column,
            version: #private::core::option_env!("CARGO_PKG_VERSION"),
            warmup: #warmup,
            sampling: #sampling,
            cold: #cold,
            sleep: #sleep,
            graph: #graph,
            helpers: #helpers,
            is_span: false,
            is_async: #is_async,
            scope: #scope,
            clock: #clock,
            takes_default: #takes_default,
            launches: &[#(#launches),*],
            is_single: #is_single,
            options: #options,
            remarks: &[#remarks],
        });
        #private::inventory::submit! { #private::SiteRef(&#site) }
        &#site
    }}
}

/// Generates a call of a constructor that checks the user's value, located at the value.
fn checked(plan: &Plan, value: &Expr, checker: &str, maker: &str) -> TokenStream {
    let at = ours(value.span());
    let private = plan.paths.private(at);
    let [checker, maker] = [checker, maker].map(|name| Ident::new(name, at));
    quote_spanned!(at=> #private::#checker::#maker(#value))
}

/// Generates the expression that describes the stream of a call.
fn source(plan: &Plan) -> TokenStream {
    let Plan { paths, streams, .. } = plan;
    if let [stream @ Stream { cfg: None, .. }] = streams.as_slice() {
        return source_of(stream, paths);
    }
    let at = Span::mixed_site();
    let private = paths.private(at);
    let (source, query) = (local("source"), local("query"));
    let predicate = |stream: &Stream| stream.cfg.clone().unwrap_or_else(|| quote!(all()));
    let lets = streams.iter().map(|stream| {
        let cfg = predicate(stream);
        let value = source_of(stream, paths);
        quote_spanned!(at=> #[cfg(#cfg)] let #source = #value;)
    });
    let pairs = streams
        .iter()
        .enumerate()
        .flat_map(|(i, one)| streams.iter().skip(i + 1).map(move |two| (one, two)));
    let clashes = pairs.map(|(one, two)| {
        let (first, second) = (predicate(one), predicate(two));
        let [one, two] = [one, two].map(|stream| stream.expr.to_token_stream());
        let message = two_params(one, two, needed_by(&plan.args));
        quote_spanned!(at=> #[cfg(all(#first, #second))] #private::core::compile_error!(#message);)
    });
    let any = streams.iter().map(predicate);
    let any = quote!(any(#(#any),*));
    let message = no_stream(needed_by(&plan.args));
    quote_spanned! {at=> {
        #(#clashes)*
        #(#lets)*
        #[cfg(not(#any))] #private::core::compile_error!(#message);
        #[cfg(not(#any))] let #source = #query.host::<()>();
        #source
    }}
}

/// Generates the expression for one stream. It leaves the choice between stream types to the
/// compiler.
fn source_of(Stream { expr, lent, .. }: &Stream, paths: &Paths) -> TokenStream {
    let at = ours(expr.span());
    let private = paths.private(at);
    let query = local("query");
    let value = value_of(expr, quote_spanned!(at=> #query.host()), paths);
    let owner = format_ident!("{}", if *lent { "lent" } else { "owned" });
    quote_spanned!(at=> #private::source!(#value, #owner, #query))
}

/// Generates the key and the workload of a call. Each value has its own closure, so that a `?` in
/// one of them does not affect the others.
fn details(plan: &Plan) -> TokenStream {
    let at = Span::mixed_site();
    let private = plan.paths.private(at);
    if plan.args.series.is_none() && plan.args.bytes.is_none() && plan.args.flops.is_none() {
        return quote_spanned!(at=> #private::NoDetails);
    }
    let amount = |expr: &Option<Expr>| {
        let Some(expr) = expr else { return quote_spanned!(at=> #private::Amount::UNKNOWN) };
        let at = ours(expr.span());
        let private = plan.paths.private(at);
        let unknown = quote_spanned!(at=> #private::Amount::UNKNOWN);
        let value = value_of(expr, unknown, &plan.paths);
        quote_spanned!(at=> #private::evaluated(|| #private::Amount::of(#value)))
    };
    let none = quote_spanned!(at=> #private::core::option::Option::None);
    let key = plan.args.series.as_ref().map_or(none.clone(), |expr| {
        let at = ours(expr.span());
        let private = plan.paths.private(at);
        let value = value_of(expr, none, &plan.paths);
        quote_spanned!(at=> #private::core::option::Option::Some(#private::KeyText::of(#value)))
    });
    let (bytes, flops) = (amount(&plan.args.bytes), amount(&plan.args.flops));
    quote_spanned! {at=>
        #private::CallDetails {
            key: || #key,
            work: || #private::Workload { bytes: #bytes, flops: #flops },
        }
    }
}

/// Generates a reference to the user's expression, in which `?` returns `otherwise` from the
/// surrounding closure. The reference prevents a move out of a place.
fn value_of(expr: &Expr, otherwise: TokenStream, paths: &Paths) -> ExprReference {
    let mut expr = expr.clone();
    TryRewriter { paths, otherwise }.visit_expr_mut(&mut expr);
    ExprReference {
        attrs: Vec::new(),
        and_token: syn::token::And(ours(expr.span())),
        mutability: None,
        expr: Box::new(expr),
    }
}

/// Rewrites `?` on an `Option` or a `Result` to end the evaluation instead of the function.
struct TryRewriter<'a> {
    paths: &'a Paths,
    /// The value that the evaluation then returns.
    otherwise: TokenStream,
}

impl VisitMut for TryRewriter<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // Here `?` ends the closure or block itself.
        if matches!(expr, Expr::Closure(_) | Expr::Async(_) | Expr::Const(_)) {
            return;
        }
        visit_mut::visit_expr_mut(self, expr);
        let Expr::Try(tried) = expr else { return };
        let at = ours(tried.question_token.span());
        let private = self.paths.private(at);
        let (inner, value, otherwise) = (&tried.expr, local("value"), &self.otherwise);
        *expr = Expr::Verbatim(quote_spanned! {at=>
            (match #private::tried(#inner) {
                #private::core::option::Option::Some(#value) => #value,
                #private::core::option::Option::None => return #otherwise,
            })
        });
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}
