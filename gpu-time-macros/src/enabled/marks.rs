//! Generates the calls around a launch and around an await.

use std::mem;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Local, Pat, Stmt, StmtMacro, parse_quote};

use crate::enabled::paths::{Paths, local as var, ours};

/// Launches that return the driver's status code.
const RAW_LAUNCHES: [&str; 2] = ["cuLaunchKernel", "cuLaunchKernelEx"];

/// Selects what is marked.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    pub paths: &'a Paths,
    pub launches: bool,
    pub awaits: bool,
}

impl Marks<'_> {
    /// ```text
    /// Input:  b.launch(cfg)
    /// Output: stop((Scope::start(&scope, 0), b.launch(cfg)), &scope, |answer| probe(answer).failed())
    /// ```
    /// A call evaluates its arguments in order and adds no block, closure or temporary scope around
    /// the launch. The tuple avoids the lints on arguments of type `()` and on parentheses around an
    /// argument.
    pub fn bracket(self, launch: &mut Expr, name: &Ident, number: u32) {
        let at = ours(name.span());
        let start = self.start(at, number);
        let (scope, failed) = (&self.paths.scope, self.failed(name));
        let arguments = quote_spanned!(at=> (#start, #launch), &#scope, #failed);
        *launch = self.call_in_place_of(launch, "stop", arguments);
    }

    fn start(self, at: Span, number: u32) -> TokenStream {
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        let number = Literal::u32_suffixed(number);
        quote_spanned!(at=> #private::Scope::start(&#scope, #number))
    }

    /// Returns the closure that checks the value returned by a launch for failure.
    fn failed(self, name: &Ident) -> TokenStream {
        let at = ours(name.span());
        let (private, answer) = (self.paths.private(at), var("answer"));
        if RAW_LAUNCHES.iter().any(|raw| name == raw) {
            quote_spanned! {at=> |#answer| {
                use #private::Status as _;
                #private::probe(&(*#answer).result()).gpu_time_failed()
            }}
        } else {
            quote_spanned!(at=> |#answer| #private::probe(#answer).gpu_time_failed())
        }
    }

    /// Brackets a statement with statements before and after it, because its macro may expand to
    /// anything.
    pub fn bracket_statement(self, stmt: Stmt, at: Span, number: u32) -> [Stmt; 3] {
        let at = ours(at);
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        let token = var(&format!("token{number}"));
        let start = self.start(at, number);
        let start = quote_spanned!(at=> let #token = #start;);
        let stop = quote_spanned!(at=> #private::stop((#token, ()), &#scope, |()| false););
        surround(stmt, start, stop)
    }

    /// ```text
    /// Input:  let x: T = launch!(…);
    /// Output: let token = Scope::start(&scope, 0);
    ///         let value: T = launch!(…);
    ///         let x = stop((token, value), &scope, …);
    /// ```
    /// The temporaries of the value live as long as in the input.
    pub fn bracket_let(self, mut local: Local, name: &Ident, number: u32) -> [Stmt; 3] {
        let at = ours(name.span());
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        let (token, value) = (var(&format!("token{number}")), var(&format!("value{number}")));
        let (start, failed) = (self.start(at, number), self.failed(name));
        let attrs = local.attrs.clone();
        let of_value = parse_quote!(#value);
        let of_user = match &mut local.pat {
            Pat::Type(typed) => mem::replace(&mut *typed.pat, of_value),
            pat => mem::replace(pat, of_value),
        };
        let bind = quote_spanned! {at=>
            #(#attrs)* let #of_user = #private::stop((#token, #value), &#scope, #failed);
        };
        let start = quote_spanned!(at=> #(#attrs)* let #token = #start;);
        [statement(start), Stmt::Local(local), statement(bind)]
    }

    /// ```text
    /// Input:  work.await
    /// Output: awaited(((), awaiting((work,), &scope).await), &scope)
    /// ```
    /// A scope that is dropped between the two calls belongs to a cancelled future.
    pub fn watch(self, expr: &mut Expr) {
        self.watch_operand(expr);
        let scope = &self.paths.scope;
        let arguments = quote_spanned!(ours(expr.span())=> ((), #expr), &#scope);
        *expr = self.call_in_place_of(expr, "awaited", arguments);
    }

    /// ```text
    /// Input:  work.await
    /// Output: awaiting((work,), &scope).await
    /// ```
    pub fn watch_operand(self, expr: &mut Expr) {
        let Expr::Await(awaited) = expr else { return };
        let (scope, operand) = (&self.paths.scope, &awaited.base);
        let arguments = quote_spanned!(ours(operand.span())=> (#operand,), &#scope);
        *awaited.base = self.call_in_place_of(operand, "awaiting", arguments);
    }

    /// Returns the statement to insert after an await whose operand is marked.
    pub fn watched(self, attrs: &[Attribute], at: Span) -> Stmt {
        let (after, cfgs) = (self.after(at), cfgs(attrs));
        statement(quote_spanned!(ours(at)=> #(#cfgs)* #after))
    }

    fn after(self, at: Span) -> TokenStream {
        let at = ours(at);
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        quote_spanned!(at=> #private::awaited(((), ()), &#scope);)
    }

    /// Marks a macro that may await, like [`watch`](Self::watch).
    pub fn watch_macro(self, expr: &mut Expr) {
        let at = ours(expr.span());
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        let arguments = quote_spanned!(at=> (#private::Scope::suspend(&#scope), #expr), &#scope);
        *expr = self.call_in_place_of(expr, "awaited", arguments);
    }

    /// Marks a macro that may await and expand to several statements, the last of which has the value.
    pub fn watch_tail(self, call: StmtMacro) -> Stmt {
        let mut block = Group::new(Delimiter::Brace, call.to_token_stream());
        // The edition of the user's delimiters decides when temporaries are dropped.
        block.set_span(call.mac.delimiter.span().join());
        let mut expr = Expr::Verbatim(TokenTree::from(block).into());
        self.watch_macro(&mut expr);
        Stmt::Expr(expr, None)
    }

    /// Marks a statement with a macro that may await.
    pub fn watch_statement(self, stmt: Stmt, at: Span) -> [Stmt; 3] {
        let after = self.after(at);
        let at = ours(at);
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        surround(stmt, quote_spanned!(at=> #private::Scope::suspend(&#scope);), after)
    }

    /// Returns a call of one of gpu-time's functions that replaces an expression. It has the span
    /// of the expression, so that compiler messages point at the same code.
    fn call_in_place_of(self, expr: &Expr, function: &str, arguments: TokenStream) -> Expr {
        let (first, last) = ends(expr);
        let private = self.paths.private(first);
        let function = Ident::new(function, first);
        let mut arguments = Group::new(Delimiter::Parenthesis, arguments);
        arguments.set_span(last);
        Expr::Verbatim(quote_spanned!(first=> #private::#function #arguments))
    }
}

/// Returns the spans of the first and the last token.
fn ends(expr: &Expr) -> (Span, Span) {
    let mut tokens = expr.to_token_stream().into_iter();
    let first = tokens.next().map_or_else(Span::mixed_site, |tree| tree.span());
    let last = tokens.last().map_or(first, |tree| tree.span());
    (first, last)
}

fn statement(tokens: TokenStream) -> Stmt {
    Stmt::Expr(Expr::Verbatim(tokens), None)
}

/// Puts one statement before and one after `stmt`. In a `let … else`, `after` also begins the
/// `else` block.
fn surround(mut stmt: Stmt, before: TokenStream, after: TokenStream) -> [Stmt; 3] {
    let attrs = match &mut stmt {
        Stmt::Local(local) => {
            let otherwise = local.init.as_mut().and_then(|init| init.diverge.as_mut());
            if let Some((_, otherwise)) = otherwise
                && let Expr::Block(otherwise) = &mut **otherwise
            {
                otherwise.block.stmts.insert(0, statement(after.clone()));
            }
            &local.attrs
        }
        Stmt::Macro(call) => &call.attrs,
        Stmt::Expr(Expr::MethodCall(call), _) => &call.attrs,
        _ => &Vec::new(),
    };
    let cfgs = cfgs(attrs);
    let before = quote!(#(#cfgs)* #before);
    let after = quote!(#(#cfgs)* #after);
    [statement(before), stmt, statement(after)]
}

/// Returns the attributes that decide whether a statement exists.
fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter(|attr| is_cfg(attr)).cloned().collect()
}

pub fn is_cfg(attr: &Attribute) -> bool {
    attr.path().is_ident("cfg")
}
