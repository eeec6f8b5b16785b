//! Positions in which a mark would change the meaning of an expression.

use quote::ToTokens;
use syn::{Expr, ExprUnary, UnOp};

use crate::bindings::bare;

/// Turns macros that the expression uses as places into [`Expr::Verbatim`].
///
/// A macro may expand to a place. A mark around it would move or copy the value out of that place.
pub fn hide_places(expr: &mut Expr) {
    let (one, other) = match expr {
        Expr::Assign(assign) => (Some(&mut *assign.left), None),
        // A comparison borrows its operands.
        Expr::Binary(binary) => (Some(&mut *binary.left), Some(&mut *binary.right)),
        Expr::Call(call) => (Some(&mut *call.func), None),
        Expr::Field(field) => (Some(&mut *field.base), None),
        Expr::Index(index) => (Some(&mut *index.expr), None),
        Expr::Let(condition) => (Some(&mut *condition.expr), None),
        Expr::Match(choice) => (Some(&mut *choice.expr), None),
        Expr::MethodCall(call) => (Some(&mut *call.receiver), None),
        Expr::RawAddr(address) => (Some(&mut *address.expr), None),
        Expr::Reference(reference) => (Some(&mut *reference.expr), None),
        Expr::Struct(value) => (value.rest.as_deref_mut(), None),
        Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr, .. }) => (Some(&mut **expr), None),
        _ => (None, None),
    };
    for place in [one, other].into_iter().flatten() {
        if let Expr::Macro(_) = bare(place) {
            *place = Expr::Verbatim(place.to_token_stream());
        }
    }
}

/// Returns `true` if a reference to the expression may be promoted to `'static`: it consists of
/// literals, constants and constructor calls.
pub fn is_constant(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Lit(_) => true,
        Expr::Path(path) => match path.path.get_ident() {
            // A variable begins with a lowercase letter.
            Some(name) => name.to_string().starts_with(char::is_uppercase),
            None => true,
        },
        Expr::Call(call) => {
            matches!(bare(&call.func), Expr::Path(_)) && call.args.iter().all(is_constant)
        }
        Expr::Array(array) => array.elems.iter().all(is_constant),
        Expr::Binary(binary) => is_constant(&binary.left) && is_constant(&binary.right),
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::Reference(reference) => is_constant(&reference.expr),
        Expr::Repeat(repeat) => is_constant(&repeat.expr),
        Expr::Struct(value) => value.fields.iter().all(|field| is_constant(&field.expr)),
        Expr::Tuple(tuple) => tuple.elems.iter().all(is_constant),
        Expr::Unary(unary) => is_constant(&unary.expr),
        _ => false,
    }
}
