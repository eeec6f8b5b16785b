//! The stream of a function: given by `stream = EXPR`, inferred, or none.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ReceiverKind, Type, parse_quote};

use crate::args::Args;
use crate::awaits::{await_in, contains};
use crate::bindings::{Meaning, bare, place};
use crate::errors::Errors;
use crate::func::{Param, TimedFn, argument, peel};
use crate::launches::{Builder, Findings};
use crate::values::Clock;

/// Types of raw handles.
const RAW_HANDLES: [&str; 2] = ["CUstream", "cudaStream_t"];

/// The source of a function's times.
pub enum Source {
    /// No stream, for a clock that needs none, or after an error.
    None,
    /// A stream: the candidate that no `cfg` removes. At most one candidate has no `cfg`.
    Streams(Vec<Stream>),
}

/// An expression for a stream.
pub struct Stream {
    pub expr: Expr,
    /// The `cfg` predicate of the parameter that it names.
    pub cfg: Option<TokenStream>,
    /// The caller keeps the stream alive until the call returns.
    pub lent: bool,
}

impl Source {
    /// Returns the stream that is given or inferred. Without one, a key that needs a stream is an
    /// error.
    pub fn new(args: &Args, func: &TimedFn, found: &Findings, errors: &mut Errors) -> Source {
        if args.has_clock(Clock::Host) || args.has_clock(Clock::Kernels) {
            return Source::None;
        }
        if let Some(arg) = &args.stream {
            if errors.inherits("stream") && is_without_self(&arg.value, func) {
                errors.mark_unfit("stream");
                return Source::None;
            }
            if let Some(at) = await_in(&arg.value) {
                errors.at(at, no_await("stream"));
            }
            let lent = is_lent(&arg.value, func);
            return Source::Streams(vec![Stream { expr: arg.value.clone(), cfg: None, lent }]);
        }
        // An argument that could not be parsed may have been the stream.
        if !args.complete {
            return Source::None;
        }
        let params: Vec<Param> = func.params().filter(|param| is_stream(param.ty)).collect();
        let mut certain = params.iter().filter(|param| cfg(param.attrs).is_none());
        if let (Some(one), Some(two)) = (certain.next(), certain.next()) {
            errors.at(two.name, two_params(one.name, two.name, needed_by(args)));
            return Source::None;
        }
        if !params.is_empty() {
            return Source::Streams(params.iter().map(from_param).collect());
        }
        match (from_builders(func, found), args.needing_stream()) {
            (Ok(Some(stream)), _) => return Source::Streams(vec![stream]),
            (_, None) => {}
            (Ok(None), Some((key, text))) => {
                errors.about(&[key], &func.sig.ident, no_stream(Some(text)));
            }
            (Err(error), Some(_)) => errors.push(error),
        }
        Source::None
    }
}

/// Returns the argument that needs a stream, as the user would write it. Messages then do not offer
/// `clock = "kernels"`, which would conflict with it.
pub fn needed_by(args: &Args) -> Option<&'static str> {
    args.needing_stream().map(|(_, text)| text)
}

/// The error for two parameters that could be the stream.
pub fn two_params(one: impl Display, two: impl Display, needed_by: Option<&str>) -> String {
    let start = format!("both `{one}` and `{two}` could be the stream: write `stream = {one}`");
    match needed_by {
        Some(_) => format!("{start} or `stream = {two}`"),
        None => {
            format!("{start}, `stream = {two}`, or `clock = \"kernels\"` to time the work on both")
        }
    }
}

/// The error for a function without a stream. Without an argument that needs one, its only stream is a
/// parameter that a `cfg` has removed.
pub fn no_stream(needed_by: Option<&str>) -> String {
    match needed_by {
        Some(argument) => {
            format!("no stream found, which `{argument}` needs: write `stream = EXPR`")
        }
        None => {
            "no stream found: write `stream = EXPR`, or `clock = \"kernels\"`, which needs none"
                .to_owned()
        }
    }
}

/// Infers the stream from the visible `X.launch_builder(…)` calls, which must have the same `X`. The
/// error says why it cannot be inferred, if something in the function refers to a stream.
fn from_builders(func: &TimedFn, found: &Findings) -> syn::Result<Option<Stream>> {
    if found.builders.is_empty() {
        return match (func.params().find(|param| is_raw(param.ty)), found.made.first()) {
            (Some(raw), _) => Err(syn::Error::new_spanned(raw.name, raw_needs_unsafe(&raw))),
            (None, Some(made)) => Err(syn::Error::new_spanned(made, made_in_body())),
            (None, None) => Ok(None),
        };
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
        return Err(syn::Error::new_spanned(&builder.expr, message));
    }
    let one = exprs.first().map(|expr| text(expr)).unwrap_or_default();
    if let Some(other) = exprs.iter().find(|expr| text(expr) != one) {
        let two = text(other);
        let message = format!(
            "this body launches on `{one}` and `{two}`: write `stream = {one}`, and move the launches \
             on the other stream into a function of their own"
        );
        return Err(syn::Error::new_spanned(other, message));
    }
    Ok(exprs.first().map(|expr| {
        let lent = is_lent(expr, func);
        Stream { expr: (*expr).clone(), cfg: None, lent }
    }))
}

/// Returns `true` if every visible launch is on another stream than the timed one, judged by the
/// names. A bracket does not measure such launches.
pub fn is_elsewhere(source: &Source, func: &TimedFn, found: &Findings) -> bool {
    // The name of a parameter that is a stream, or of a field.
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
    // A stream may dereference to one of its fields, so both names may mean the same stream.
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

/// Returns the source text of an expression, formatted.
fn text(expr: &Expr) -> String {
    let spaced = expr.to_token_stream().to_string();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut text = String::new();
    let mut rest = spaced.chars().peekable();
    while let Some(c) = rest.next() {
        let last = text.chars().next_back();
        // Spaces are kept between words and after a comma.
        if c != ' ' || last == Some(',') || is_word(last) && is_word(rest.peek().copied()) {
            text.push(c);
        }
    }
    text
}

fn made_in_body() -> &'static str {
    "this stream is created in the body, but timing needs it before the body runs: take the stream as \
     a parameter, or move the launches into a function that takes it, and annotate that function"
}

fn known_in_body() -> &'static str {
    "this stream is known only in the body, but timing needs it before the body runs: write \
     `stream = EXPR` with an expression that is valid there, or move the launches into a function \
     that takes the stream as a parameter, and annotate that function"
}

fn not_inferred(expr: &Expr) -> String {
    let expr = text(expr);
    format!(
        "a stream is inferred only from a parameter, `self` or a field of one: write \
         `stream = {expr}` if that returns the same stream every time"
    )
}

/// Returns `true` for a parameter or `self`, or a chain of fields that starts at one. A block's
/// parameters are the variables around it.
fn is_rooted(expr: &Expr, func: &TimedFn) -> bool {
    let is_variable = |root: &Ident| {
        if func.is_block {
            // A constant begins with a capital letter.
            root.to_string().starts_with(|c: char| c.is_lowercase() || c == '_')
        } else {
            func.bound_names().iter().any(|name| root == name)
        }
    };
    root(expr).is_some_and(|root| root == "self" || is_variable(root))
}

/// Returns the variable at which a chain of fields starts.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => root(bare(&field.base)),
        _ => None,
    }
}

/// Returns `true` if the expression names `self`, which the function lacks.
fn is_without_self(expr: &Expr, func: &TimedFn) -> bool {
    let is_self = |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word == "self");
    func.sig.receiver().is_none() && contains(&expr.to_token_stream(), &is_self)
}

/// Returns `true` if the expression reaches the stream through a shared reference that the caller
/// passed, so that the body cannot drop the stream.
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

/// Returns `true` if the type is that of a stream, looking through references and `Option`.
fn is_stream(ty: &Type) -> bool {
    let (Type::Path(path), _) = peel(ty) else { return false };
    let last = |path: &syn::TypePath, name: &str| {
        path.path.segments.last().is_some_and(|segment| segment.ident.unraw() == name)
    };
    match argument(path, "Arc") {
        Some(Type::Path(inner)) => last(inner, "CudaStream"),
        _ => last(path, "CudaStream"),
    }
}

/// Returns `true` if the type is a raw handle, looking through references and `Option`.
fn is_raw(ty: &Type) -> bool {
    let (Type::Path(path), _) = peel(ty) else { return false };
    path.path.segments.last().is_some_and(|last| RAW_HANDLES.iter().any(|raw| last.ident == raw))
}

fn raw_needs_unsafe(param: &Param) -> String {
    let name = param.name;
    let expr = match param.ty {
        Type::Path(path) if argument(path, "Option").is_some() => {
            format!("{name}.map(|stream| unsafe {{ gpu_time::raw_stream(stream) }})")
        }
        _ => format!("unsafe {{ gpu_time::raw_stream({name}) }}"),
    };
    format!(
        "`{name}` is a raw handle, and nothing shows that its stream lives: write `stream = {expr}` if it \
         outlives the call"
    )
}

/// Returns the predicate of the `cfg` attributes.
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

/// The error for a value that contains `.await`.
pub fn no_await(key: impl Display) -> String {
    format!("`{key}` cannot contain `.await`: it is evaluated before the body")
}
