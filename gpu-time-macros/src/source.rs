//! Where the time comes from: the stream, as asked for or inferred.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ReceiverKind, Token, Type, parse_quote};

use crate::args::{Args, Clock};
use crate::errors::Errors;
use crate::func::{Param, TimedFn, argument, peel};
use crate::launches::{Findings, bare};

/// Where the time comes from.
pub enum Source {
    /// The host clock.
    Host,
    /// Events on a stream: the one of these that is not configured out. At most one has no `cfg`.
    Streams(Vec<Stream>),
}

/// An expression for the stream.
pub struct Stream {
    pub expr: Expr,
    /// The predicate of the parameter that it names.
    pub cfg: Option<TokenStream>,
    /// Whether the caller keeps the stream until the call is over, so that we need not.
    pub lent: bool,
}

impl Source {
    /// The stream, as asked for or inferred.
    pub fn new(args: &Args, func: &TimedFn, found: &Findings, errors: &mut Errors) -> Source {
        if args.has_clock(Clock::Host) {
            return Source::Host;
        }
        if let Some(arg) = &args.stream {
            if let Some(at) = await_in(&arg.value) {
                errors
                    .at(at, "a stream cannot be awaited: it is needed before the function begins");
            }
            let lent = is_lent(&arg.value, func);
            return Source::Streams(vec![Stream { expr: arg.value.clone(), cfg: None, lent }]);
        }
        // What could not be read may have been the stream.
        if !args.complete {
            return Source::Host;
        }
        let params: Vec<Param> = func.params().filter(|param| is_stream(param.ty)).collect();
        let mut certain = params.iter().filter(|param| cfg(param.attrs).is_none());
        match (certain.next(), certain.next()) {
            (Some(one), Some(two)) => {
                errors.at(two.name, two_params(one.name, two.name));
                Source::Host
            }
            _ if params.is_empty() => from_builders(func, found, errors),
            _ => Source::Streams(params.iter().map(from_param).collect()),
        }
    }
}

/// What to say where inference would have to choose.
pub fn two_params(one: impl Display, two: impl Display) -> String {
    format!(
        "`{one}` and `{two}` could both be the stream: write `stream = {one}` or `stream = {two}`"
    )
}

/// What to say where inference finds nothing.
pub fn no_stream() -> &'static str {
    "no stream to time on: write `stream = EXPR`, or `clock = \"host\"` for the time on the CPU"
}

/// The one `X` of every visible `X.launch_builder(…)`.
fn from_builders(func: &TimedFn, found: &Findings, errors: &mut Errors) -> Source {
    let Some(first) = found.builders.first() else {
        match found.made.first() {
            Some(made) => errors.at(made, made_in_body()),
            None => errors.at(&func.sig.ident, no_stream()),
        }
        return Source::Host;
    };
    let mut exprs = Vec::new();
    for builder in &found.builders {
        match at_entry(builder, func, found) {
            Some(expr) => exprs.push(expr),
            None => {
                errors.at(builder, made_in_body());
                return Source::Host;
            }
        }
    }
    let text = |expr: &Expr| expr.to_token_stream().to_string().replace(' ', "");
    if let Some(other) = exprs.iter().find(|expr| exprs.first().map(text) != Some(text(expr))) {
        let (one, two) = (text(first), text(other));
        let message = format!(
            "this body launches on `{one}` and on `{two}`: write `stream = {one}`, and time what \
             runs on the other in a function of its own"
        );
        errors.at(other, message);
        return Source::Host;
    }
    let streams = exprs.into_iter().take(1).map(|expr| {
        let lent = is_lent(&expr, func);
        Stream { expr, cfg: None, lent }
    });
    Source::Streams(streams.collect())
}

/// Whether `stream` names one parameter, and everything that the body launches goes to others: a bracket on
/// the one sees nothing of that.
pub fn is_elsewhere(args: &Args, func: &TimedFn, found: &Findings) -> bool {
    let param = |expr: &Expr| -> Option<Ident> {
        let Expr::Path(path) = place(expr) else { return None };
        let name = path.path.get_ident()?;
        func.params().any(|p| p.name == name && is_stream(p.ty)).then(|| name.clone())
    };
    let Some(stream) = args.stream.as_ref().and_then(|arg| param(&arg.value)) else { return false };
    let is_other = |builder: &Expr| {
        let launched = at_entry(builder, func, found).and_then(|expr| param(&expr));
        launched.is_some_and(|launched| launched != stream)
    };
    !found.builders.is_empty() && found.builders.iter().all(is_other)
}

fn made_in_body() -> &'static str {
    "this stream is made in the body, and is needed before it: take the stream as a parameter, or \
     move the launches into a function that does and annotate that"
}

/// The expression, if it is a path that means the same at entry: one that starts at a parameter that
/// nothing in the body hides.
fn at_entry(builder: &Expr, func: &TimedFn, found: &Findings) -> Option<Expr> {
    let mut expr = place(builder).clone();
    let root = root_mut(&mut expr)?;
    // `async_trait` moves `self` into a variable of this name, which does not exist at entry.
    if root == "__self" {
        let receiver = func.sig.receiver()?;
        *root = Ident::new("self", receiver.self_token.span);
    }
    let name = root.to_string();
    let is_param = name == "self" || func.bound_names().contains(&name);
    // It also binds every parameter anew, to what it is.
    let is_hidden = found.bound.contains(&name) && !is_async_trait(func);
    (is_param && !is_hidden).then_some(expr)
}

/// Whether the function has the lifetime that `async_trait` adds to every method.
fn is_async_trait(func: &TimedFn) -> bool {
    func.sig.generics.lifetimes().any(|lifetime| lifetime.lifetime.ident == "async_trait")
}

/// The expression without references and parentheses around it.
fn place(expr: &Expr) -> &Expr {
    match bare(expr) {
        Expr::Reference(reference) => place(&reference.expr),
        expr => expr,
    }
}

/// The variable at which a chain of fields starts.
fn root_mut(expr: &mut Expr) -> Option<&mut Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() && path.path.segments.len() == 1 => {
            path.path.segments.first_mut().map(|segment| &mut segment.ident)
        }
        Expr::Field(field) => root_mut(&mut field.base),
        Expr::Paren(paren) => root_mut(&mut paren.expr),
        Expr::Group(group) => root_mut(&mut group.expr),
        _ => None,
    }
}

/// Whether the expression reaches the stream through a shared reference that the caller lent for
/// longer than the call: then the body cannot drop it.
fn is_lent(expr: &Expr, func: &TimedFn) -> bool {
    let mut expr = place(expr).clone();
    let Some(root) = root_mut(&mut expr) else { return false };
    if root == "self" {
        return match func.sig.receiver().map(|receiver| &receiver.kind) {
            Some(ReceiverKind::Reference(_, _, mutability)) => mutability.is_none(),
            _ => false,
        };
    }
    func.params().any(|param| param.name == root && peel(param.ty).1)
}

fn from_param(param: &Param) -> Stream {
    let name = param.name;
    Stream { expr: parse_quote!(#name), cfg: cfg(param.attrs), lent: peel(param.ty).1 }
}

/// Whether the type is one of a stream, through references and `Option`.
fn is_stream(ty: &Type) -> bool {
    let (Type::Path(path), _) = peel(ty) else { return false };
    let last = |path: &syn::TypePath, name: &str| {
        path.path.segments.last().is_some_and(|segment| segment.ident.unraw() == name)
    };
    match argument(path, "Arc") {
        Some(Type::Path(inner)) => last(inner, "CudaStream"),
        _ => last(path, "CudaStream") || last(path, "CUstream"),
    }
}

/// The predicate under which the attributes leave something in.
fn cfg(attrs: &[Attribute]) -> Option<TokenStream> {
    let predicates: Vec<TokenStream> = attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .filter_map(|attr| Some(attr.meta.require_list().ok()?.tokens.clone()))
        .collect();
    match predicates.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        all => Some(quote!(all(#(#all),*))),
    }
}

/// The first await of the expression itself.
pub fn await_in(expr: &Expr) -> Option<Token![await]> {
    struct Find(Option<Token![await]>);
    impl<'ast> Visit<'ast> for Find {
        fn visit_expr_await(&mut self, expr: &'ast syn::ExprAwait) {
            self.0.get_or_insert(expr.await_token);
            visit::visit_expr_await(self, expr);
        }
        fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut find = Find(None);
    find.visit_expr(expr);
    find.0
}
