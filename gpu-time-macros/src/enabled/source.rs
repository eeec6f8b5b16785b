//! The stream of a function: given by `stream = EXPR`, inferred, or none.

use std::fmt::Display;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Expr, PatType, ReceiverKind, Type, TypePath, parse_quote};

use crate::enabled::args::{Args, Clock};
use crate::enabled::awaits::{await_in, mentions};
use crate::enabled::bindings::{Meaning, bare, place};
use crate::enabled::errors::Errors;
use crate::enabled::func::{TimedFn, argument, peel};
use crate::enabled::launches::{Builder, Findings};

/// Types of raw handles.
const RAW_HANDLES: [&str; 2] = ["CUstream", "cudaStream_t"];

/// An expression for a stream.
pub struct Stream {
    pub expr: Expr,
    /// The `cfg` predicate of the parameter that it names.
    pub cfg: Option<TokenStream>,
    /// The caller keeps the stream alive until the call returns.
    pub lent: bool,
}

/// Returns the candidates for the stream, given or inferred. At most one of them has no `cfg`. Without any, a key that
/// needs a stream is an error.
pub fn streams(args: &Args, func: &TimedFn, found: &Findings, errors: &mut Errors) -> Vec<Stream> {
    if matches!(args.clock, Some(Clock::Host | Clock::Kernels)) {
        return Vec::new();
    }
    if let Some(expr) = &args.stream {
        if errors.inherits("stream") && is_without_self(expr, func) {
            errors.mark_unfit("stream");
            return Vec::new();
        }
        no_awaits(&[("stream", &args.stream)], errors);
        return vec![Stream { expr: expr.clone(), cfg: None, lent: is_lent(expr, func) }];
    }
    // An argument that could not be parsed may have been the stream.
    if !args.complete {
        return Vec::new();
    }
    let params = || func.params().filter(|(_, param)| is_stream(&param.ty));
    let mut certain = params().filter(|(_, param)| cfg(&param.attrs).is_none());
    if let (Some((one, _)), Some((two, _))) = (certain.next(), certain.next()) {
        errors.at(two, two_params(one, two, needed_by(args)));
        return Vec::new();
    }
    let of_params: Vec<Stream> = params().map(from_param).collect();
    if !of_params.is_empty() {
        return of_params;
    }
    match (from_builders(func, found), args.needing_stream()) {
        (Ok(stream @ Some(_)), _) => return stream.into_iter().collect(),
        (_, None) => {}
        (Ok(None), Some((key, text))) => {
            errors.about(&[key], &func.sig.ident, no_stream(Some(text)));
        }
        (Err(error), Some(_)) => errors.push(error),
    }
    Vec::new()
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
    // `self.launch_builder(…)` may be a method of the type itself, so it does not show a stream.
    let shows_stream = |builder: &&Builder| match &builder.meaning {
        Meaning::Before(expr) => {
            !matches!(bare(expr), Expr::Path(path) if path.path.is_ident("self"))
        }
        _ => true,
    };
    let builders: Vec<&Builder> = found.builders.iter().filter(shows_stream).collect();
    if builders.is_empty() {
        return match (func.params().find(|(_, param)| is_raw(&param.ty)), found.made.first()) {
            (Some(raw), _) => Err(syn::Error::new_spanned(raw.0, raw_needs_unsafe(raw))),
            (None, Some(made)) => Err(syn::Error::new_spanned(made, MADE_IN_BODY)),
            (None, None) => Ok(None),
        };
    }
    let mut exprs = Vec::new();
    for builder in builders {
        let message = match &builder.meaning {
            Meaning::Before(expr) if is_rooted(expr, func) => {
                exprs.push(expr);
                continue;
            }
            Meaning::Before(expr) => not_inferred(expr),
            Meaning::Made => MADE_IN_BODY.to_owned(),
            Meaning::Unknown => KNOWN_IN_BODY.to_owned(),
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
pub fn is_elsewhere(streams: &[Stream], func: &TimedFn, found: &Findings) -> bool {
    // The name of a parameter that is a stream, or of a field.
    let name = |expr: &Expr| {
        let expr = place(expr);
        let is_stream =
            |root: &Ident| func.params().any(|(name, p)| name == root && is_stream(&p.ty));
        let is_one = is_rooted(expr, func)
            && (matches!(expr, Expr::Field(_)) || root(expr).is_some_and(is_stream));
        is_one.then(|| text(expr))
    };
    let [stream] = streams else { return false };
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

const MADE_IN_BODY: &str = "this stream is created in the body, but timing needs it before the body runs: take the stream as \
     a parameter, or move the launches into a function that takes it, and annotate that function";

const KNOWN_IN_BODY: &str = "this stream is known only in the body, but timing needs it before the body runs: write \
     `stream = EXPR` with an expression that is valid there, or move the launches into a function \
     that takes the stream as a parameter, and annotate that function";

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
    func.sig.receiver().is_none() && mentions(&expr.to_token_stream(), "self")
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
    func.params().any(|(name, param)| name == root && peel(&param.ty).1)
}

fn from_param((name, param): (&Ident, &PatType)) -> Stream {
    Stream { expr: parse_quote!(#name), cfg: cfg(&param.attrs), lent: peel(&param.ty).1 }
}

/// Returns `true` if the type is that of a stream, looking through references and `Option`.
fn is_stream(ty: &Type) -> bool {
    let (Type::Path(path), _) = peel(ty) else { return false };
    match argument(path, "Arc") {
        Some(Type::Path(inner)) => ends_in(inner, &["CudaStream"]),
        _ => ends_in(path, &["CudaStream"]),
    }
}

/// Returns `true` if the type is a raw handle, looking through references and `Option`.
fn is_raw(ty: &Type) -> bool {
    matches!(peel(ty), (Type::Path(path), _) if ends_in(path, &RAW_HANDLES))
}

fn ends_in(path: &TypePath, names: &[&str]) -> bool {
    let last = path.path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident.unraw() == name))
}

fn raw_needs_unsafe((name, param): (&Ident, &PatType)) -> String {
    let expr = match &*param.ty {
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

/// Reports values that contain `.await`.
pub fn no_awaits(values: &[(&str, &Option<Expr>)], errors: &mut Errors) {
    for (key, value) in values {
        if let Some(at) = value.as_ref().and_then(await_in) {
            errors.at(
                at,
                format!("`{key}` cannot contain `.await`: it is evaluated before the body"),
            );
        }
    }
}
