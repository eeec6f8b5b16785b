//! Where the time comes from: the stream, as asked for or inferred.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ReceiverKind, Token, Type, parse_quote};

use crate::args::{Args, Clock};
use crate::bindings::{Meaning, bare, place};
use crate::errors::Errors;
use crate::func::{Param, TimedFn, argument, peel};
use crate::launches::{Builder, Findings};

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
    if found.builders.is_empty() {
        match found.made.first() {
            Some(made) => errors.at(made, made_in_body()),
            None => errors.at(&func.sig.ident, no_stream()),
        }
        return Source::Host;
    }
    let mut exprs = Vec::new();
    for builder in &found.builders {
        let message = match &builder.meaning {
            Meaning::Before(expr) if is_rooted(expr, func) => {
                exprs.push(expr);
                continue;
            }
            Meaning::Before(expr) => not_inferred(expr),
            Meaning::Made => made_in_body().to_owned(),
            Meaning::Unknown => known_in_body().to_owned(),
        };
        errors.at(&builder.expr, message);
        return Source::Host;
    }
    let one = exprs.first().map(|expr| text(expr)).unwrap_or_default();
    if let Some(other) = exprs.iter().find(|expr| text(expr) != one) {
        let two = text(other);
        let message = format!(
            "this body launches on `{one}` and on `{two}`: write `stream = {one}`, and time what \
             runs on the other in a function of its own"
        );
        errors.at(other, message);
        return Source::Host;
    }
    let streams = exprs.into_iter().take(1).map(|expr| {
        let lent = is_lent(expr, func);
        Stream { expr: expr.clone(), cfg: None, lent }
    });
    Source::Streams(streams.collect())
}

/// Whether everything that the body launches goes to other streams than this one, as far as names tell: a
/// bracket on the one sees nothing of that.
pub fn is_elsewhere(source: &Source, func: &TimedFn, found: &Findings) -> bool {
    // A parameter that is a stream, or a field.
    let name = |expr: &Expr| {
        let expr = place(expr);
        let is_stream = |root: &Ident| func.params().any(|p| p.name == root && is_stream(p.ty));
        let is_one = is_rooted(expr, func)
            && (matches!(expr, Expr::Field(_)) || root(expr).is_some_and(is_stream));
        is_one.then(|| text(expr))
    };
    let Source::Streams(streams) = source else { return false };
    let [stream] = streams.as_slice() else { return false };
    let Some(stream) = name(&stream.expr) else { return false };
    // One may be what the other dereferences to.
    let is_in = |part: &str, whole: &str| {
        part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_other = |builder: &Builder| match &builder.meaning {
        Meaning::Before(expr) => {
            name(expr).is_some_and(|other| !is_in(&other, &stream) && !is_in(&stream, &other))
        }
        Meaning::Made => true,
        Meaning::Unknown => false,
    };
    !found.builders.is_empty() && found.builders.iter().all(is_other)
}

/// The expression as one would write it.
fn text(expr: &Expr) -> String {
    let spaced = expr.to_token_stream().to_string();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut text = String::new();
    let mut rest = spaced.chars().peekable();
    while let Some(c) = rest.next() {
        let last = text.chars().next_back();
        // Between words and after a comma.
        if c != ' ' || last == Some(',') || is_word(last) && is_word(rest.peek().copied()) {
            text.push(c);
        }
    }
    text
}

fn made_in_body() -> &'static str {
    "this stream is made in the body, and is needed before it: take the stream as a parameter, or \
     move the launches into a function that does and annotate that"
}

fn known_in_body() -> &'static str {
    "this stream is known only in the body, and is needed before it: write `stream = EXPR` with what \
     is known before, or move the launches into a function that takes the stream as a parameter and \
     annotate that"
}

fn not_inferred(expr: &Expr) -> String {
    let expr = text(expr);
    format!(
        "a stream is inferred only where it is a parameter, `self` or a field of one: write \
         `stream = {expr}` if that is the same stream every time"
    )
}

/// Whether the expression is a path that starts at a parameter.
fn is_rooted(expr: &Expr, func: &TimedFn) -> bool {
    root(expr).is_some_and(|root| root == "self" || func.bound_names().iter().any(|n| root == n))
}

/// The variable at which a chain of fields starts.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => root(bare(&field.base)),
        _ => None,
    }
}

/// Whether the expression reaches the stream through a shared reference that the caller lent for
/// longer than the call: then the body cannot drop it.
fn is_lent(expr: &Expr, func: &TimedFn) -> bool {
    let Some(root) = root(place(expr)) else { return false };
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
