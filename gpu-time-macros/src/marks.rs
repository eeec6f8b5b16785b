//! The calls that are put around a launch and around an await.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Stmt, StmtMacro};

use crate::paths::{Paths, local, ours};

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
        let private = self.paths.private(at);
        let scope = &self.paths.scope;
        let number = Literal::u32_suffixed(number);
        let answer = local("answer");
        let failed = if RAW_LAUNCHES.iter().any(|raw| name == raw) {
            quote_spanned! {at=> {
                use #private::Status as _;
                #private::probe(&(*#answer).result()).gpu_time_failed()
            }}
        } else {
            quote_spanned!(at=> #private::probe(#answer).gpu_time_failed())
        };
        let arguments = quote_spanned! {at=>
            (#private::Scope::start(&#scope, #number), #launch), &#scope, |#answer| #failed
        };
        *launch = self.call_in_place_of(launch, "stop", arguments);
    }

    /// Brackets a macro whose value, if any, is unused. It may expand to any statements, so it stays a
    /// statement.
    pub fn bracket_statement(self, call: StmtMacro, number: u32) -> [Stmt; 3] {
        let at = ours(call.mac.path.span());
        let (private, scope, attrs) = (self.paths.private(at), &self.paths.scope, &call.attrs);
        let token = local(&format!("token{number}"));
        let number = Literal::u32_suffixed(number);
        let start = quote_spanned! {at=>
            #(#attrs)* let #token = #private::Scope::start(&#scope, #number);
        };
        let stop = quote_spanned!(at=> #(#attrs)* #private::stop_statement(#token, &#scope););
        [statement(start), Stmt::Macro(call), statement(stop)]
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

    /// Returns the statement after an await whose operand is marked.
    pub fn watched(self, attrs: &[Attribute], at: Span) -> Stmt {
        let at = ours(at);
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        statement(quote_spanned!(at=> #(#attrs)* #private::awaited(((), ()), &#scope);))
    }

    /// Marks a macro that may await, like [`watch`](Self::watch).
    pub fn watch_macro(self, expr: &mut Expr) {
        let at = ours(expr.span());
        let (private, scope) = (self.paths.private(at), &self.paths.scope);
        let arguments = quote_spanned!(at=> (#private::Scope::suspend(&#scope), #expr), &#scope);
        *expr = self.call_in_place_of(expr, "awaited", arguments);
    }

    /// Marks a macro that may await and whose value, if any, is unused.
    pub fn watch_statement(self, call: StmtMacro) -> [Stmt; 3] {
        let at = ours(call.mac.path.span());
        let (private, scope, attrs) = (self.paths.private(at), &self.paths.scope, &call.attrs);
        let before = quote_spanned!(at=> #(#attrs)* #private::Scope::suspend(&#scope););
        let after = self.watched(&call.attrs, at);
        [statement(before), Stmt::Macro(call), after]
    }

    /// Returns a call of one of our functions that replaces an expression. It has the span of the
    /// expression, so that compiler messages point at the same code.
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
