//! Positions in which a mark would change the meaning of an expression.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, ExprPath};

use crate::enabled::bindings::bare;

/// Turns macros at positions that do not move their value into [`Expr::Verbatim`].
///
/// A macro may expand to a place, and a mark around it would move or copy the value out of that place.
/// It may also expand to a literal or a constant, which the mark would hide from its context.
pub fn hide_places(expr: &mut Expr) {
    let (one, other) = match expr {
        Expr::Assign(assign) if is_pattern(&assign.left) => (Some(&mut *assign.right), None),
        // A comparison borrows its operands.
        Expr::Binary(binary) => (Some(&mut *binary.left), Some(&mut *binary.right)),
        Expr::Call(call) => (Some(&mut *call.func), None),
        // The type of a literal comes from the cast.
        Expr::Cast(cast) => (Some(&mut *cast.expr), None),
        Expr::Field(field) => (Some(&mut *field.base), None),
        Expr::Index(index) => (Some(&mut *index.expr), None),
        Expr::Let(condition) => (Some(&mut *condition.expr), None),
        Expr::Match(choice) => (Some(&mut *choice.expr), None),
        Expr::MethodCall(call) => (Some(&mut *call.receiver), None),
        Expr::RawAddr(address) => (Some(&mut *address.expr), None),
        Expr::Reference(reference) => (Some(&mut *reference.expr), None),
        // A constant need not be `Copy`.
        Expr::Repeat(repeat) => (Some(&mut *repeat.expr), None),
        Expr::Struct(value) => (value.rest.as_deref_mut(), None),
        // A minus sign is part of the literal after it.
        Expr::Unary(unary) => (Some(&mut *unary.expr), None),
        _ => (None, None),
    };
    for place in [one, other].into_iter().flatten() {
        if let Expr::Macro(_) = bare(place) {
            *place = Expr::Verbatim(place.to_token_stream());
        }
    }
}

/// Returns `true` if the left side of an assignment may be a pattern, which moves only what it binds.
fn is_pattern(assignee: &Expr) -> bool {
    match bare(assignee) {
        Expr::Field(_) | Expr::Index(_) | Expr::Unary(_) => false,
        Expr::Path(path) => !is_variable(path),
        _ => true,
    }
}

/// Returns `true` if a reference to the expression may be promoted to `'static`: it has no variable,
/// branch or call, except of constructors.
pub fn is_constant(expr: &Expr) -> bool {
    struct Look(bool);
    impl<'ast> Visit<'ast> for Look {
        fn visit_expr(&mut self, expr: &'ast Expr) {
            match expr {
                Expr::Await(_) | Expr::If(_) | Expr::MethodCall(_) | Expr::Try(_) => self.0 = false,
                Expr::Call(call) if matches!(bare(&call.func), Expr::Path(_)) => {
                    call.args.iter().for_each(|arg| self.visit_expr(arg));
                }
                // A macro may expand to a constant, and a closure may capture nothing.
                Expr::Closure(_) | Expr::Const(_) | Expr::Macro(_) => {}
                Expr::Path(path) => self.0 &= !is_variable(path),
                _ => visit::visit_expr(self, expr),
            }
        }
    }
    let mut look = Look(true);
    look.visit_expr(expr);
    look.0
}

fn is_variable(path: &ExprPath) -> bool {
    path.path.get_ident().is_some_and(names_variable)
}

/// Returns `true` for the name of a variable: constants and unit structs begin with an uppercase letter.
pub fn names_variable(name: &Ident) -> bool {
    !name.to_string().starts_with(char::is_uppercase)
}
