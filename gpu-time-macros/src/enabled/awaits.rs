//! Finds awaits in the control flow of a body or an expression.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Expr, Item, Macro, Stmt, Token};

/// Macros that await their arguments.
const AWAITING: [&str; 4] = ["select", "select_biased", "join", "try_join"];

/// Returns the first `.await` of the expression.
pub fn await_in(expr: &Expr) -> Option<Token![await]> {
    let mut find = Find::default();
    find.visit_expr(expr);
    find.first
}

/// Returns `true` if one of the statements may await.
pub fn awaits(stmts: &[Stmt]) -> bool {
    let mut find = Find::default();
    stmts.iter().for_each(|stmt| find.visit_stmt(stmt));
    find.first.is_some() || find.is_in_macro
}

/// Returns `true` for a macro that may await.
pub fn may_await(call: &Macro) -> bool {
    awaits_by_name(call) || mentions(&call.tokens, "await")
}

/// Returns `true` for a macro that awaits by definition.
pub fn awaits_by_name(call: &Macro) -> bool {
    let name = call.path.segments.last();
    name.is_some_and(|name| AWAITING.iter().any(|awaiting| name.ident == awaiting))
}

/// Returns `true` if the word occurs at any depth.
pub fn mentions(tokens: &TokenStream, word: &str) -> bool {
    let is_it = |tree: &TokenTree| matches!(tree, TokenTree::Ident(found) if found.unraw() == word);
    contains(tokens, &is_it)
}

/// Returns `true` if a matching token occurs at any depth.
pub fn contains(tokens: &TokenStream, wanted: &dyn Fn(&TokenTree) -> bool) -> bool {
    tokens.clone().into_iter().any(|tree| {
        wanted(&tree)
            || matches!(&tree, TokenTree::Group(group) if contains(&group.stream(), wanted))
    })
}

/// Searches for awaits. Skips closures, async blocks and items, which do not suspend the code
/// around them.
#[derive(Default)]
struct Find {
    first: Option<Token![await]>,
    is_in_macro: bool,
}

impl<'ast> Visit<'ast> for Find {
    fn visit_expr_await(&mut self, expr: &'ast syn::ExprAwait) {
        self.first.get_or_insert(expr.await_token);
        visit::visit_expr_await(self, expr);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.is_in_macro |= may_await(call);
    }

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_item(&mut self, _: &'ast Item) {}
}
