//! Parses the tokens of a function or block into [`TimedFn`]. The tokens of the body are kept as well.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Expr, FnArg, GenericArgument, Ident, ParenthesizedGenericArguments, Pat,
    PatType, PathArguments, ReturnType, Signature, Stmt, Token, TraitBound, Type, TypePath,
    Visibility, parse_quote,
};

use crate::enabled::awaits::{awaits, mentions};
use crate::enabled::errors::Errors;
use crate::enabled::fragments::{visible, visible_inside};
use crate::enabled::inherited::is_ours;

/// The static that a rewritten body declares.
pub const SITE: &str = "__GPU_TIME_SITE";
/// The marker function declared next to the static. Its type name contains the path of the user's
/// function.
pub const MARKER: &str = "__gpu_time_marker";

/// The annotated function, or a block in place of one.
pub struct TimedFn {
    pub sig: Signature,
    /// The tokens before the body.
    pub header: TokenStream,
    /// The span of the user's braces. Its edition decides when temporaries of the tail expression
    /// are dropped.
    pub braces: Span,
    /// Inner attributes and leading items, which stay before the generated statement.
    pub lead: TokenStream,
    /// The tokens of the other statements.
    pub rest: TokenStream,
    /// The other statements; `None` if `syn` cannot parse them.
    pub stmts: Option<Vec<Stmt>>,
    /// `true` for `scope!` and `guard!`, whose expressions may name variables of the surrounding
    /// function.
    pub is_block: bool,
}

impl TimedFn {
    /// Parses the item, and reports why it cannot be timed.
    pub fn parse(item: TokenStream, errors: &mut Errors) -> Option<TimedFn> {
        let (header, body) = split_body(item);
        let (attrs, sig) = match signature.parse2(header.clone()) {
            Ok(parsed) => parsed,
            Err(error) => {
                errors.push(error);
                return None;
            }
        };
        let Some(body) = body else {
            errors.at(
                &sig.ident,
                "this function has no body to time: annotate the functions that implement it",
            );
            return None;
        };
        if let Some(constness) = &sig.constness {
            errors
                .at(constness, "a `const fn` cannot be timed: it may be evaluated at compile time");
        }
        if let Some(naked) = attrs.iter().find(|attr| is_naked(attr)) {
            errors.at(
                naked,
                "a naked function cannot be timed: its body must be a single `naked_asm!`",
            );
        }
        // The second attribute is expanded later. It is only seen in the body if it is imported under
        // another name.
        if attrs.iter().any(is_ours) || has_site(body.stream()) {
            errors.at(&sig.ident, "`#[gpu_timed]` is given twice for this function");
        }
        Some(TimedFn::with_body(sig, header, &body))
    }

    /// Returns a function that represents a block, whose name is at this span. It is async if the
    /// block awaits.
    pub fn of_block(name: Span, block: &Group) -> TimedFn {
        let (mut sig, header): (Signature, _) = (parse_quote!(fn block()), TokenStream::new());
        sig.ident.set_span(name);
        let mut func = TimedFn { is_block: true, ..TimedFn::with_body(sig, header, block) };
        let is_async = match &func.stmts {
            Some(stmts) => awaits(stmts),
            None => mentions(&func.rest, "await"),
        };
        func.sig.asyncness = is_async.then(<Token![async]>::default);
        func
    }

    fn with_body(sig: Signature, header: TokenStream, body: &Group) -> TimedFn {
        let (lead, rest) = split_lead(visible(body.stream()));
        let stmts = Block::parse_within.parse2(visible_inside(rest.clone())).ok();
        TimedFn { sig, header, braces: body.span(), lead, rest, stmts, is_block: false }
    }

    /// Returns the parameters that bind one name each, with that name.
    pub fn params(&self) -> impl Iterator<Item = (&Ident, &PatType)> {
        self.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(arg) => match &*arg.pat {
                Pat::Ident(pat) if pat.subpat.is_none() => Some((&pat.ident, arg)),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        })
    }

    /// Returns every name that the parameters bind.
    pub fn bound_names(&self) -> Vec<String> {
        #[derive(Default)]
        struct Names(Vec<String>);
        impl<'ast> Visit<'ast> for Names {
            fn visit_pat_ident(&mut self, pat: &'ast syn::PatIdent) {
                self.0.push(pat.ident.to_string());
                visit::visit_pat_ident(self, pat);
            }
            fn visit_type(&mut self, _: &'ast Type) {}
        }
        let mut names = Names::default();
        for input in &self.sig.inputs {
            names.visit_fn_arg(input);
        }
        names.0
    }

    /// Returns the name of a lazy type or trait in the return type, such as `Future` or `Iterator`.
    /// The work of such a value is done after the function returns.
    pub fn returns_lazily(&self) -> Option<&Ident> {
        #[derive(Default)]
        struct Lazy<'ast>(Option<&'ast Ident>);
        impl<'ast> Visit<'ast> for Lazy<'ast> {
            fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
                self.note(&bound.path, LAZY_TRAITS);
                visit::visit_trait_bound(self, bound);
            }
            fn visit_type_path(&mut self, ty: &'ast TypePath) {
                self.note(&ty.path, LAZY_TYPES);
                visit::visit_type_path(self, ty);
            }
            // The return type of a returned function does not count.
            fn visit_parenthesized_generic_arguments(
                &mut self,
                _: &'ast ParenthesizedGenericArguments,
            ) {
            }
            fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}
        }
        impl<'ast> Lazy<'ast> {
            fn note(&mut self, path: &'ast syn::Path, names: &[&str]) {
                let Some(last) = path.segments.last() else { return };
                if names.iter().any(|name| last.ident == name) {
                    self.0.get_or_insert(&last.ident);
                }
            }
        }
        let ReturnType::Type(_, ty) = &self.sig.output else { return None };
        let mut lazy = Lazy::default();
        lazy.visit_type(ty);
        lazy.0
    }
}

const LAZY_TRAITS: &[&str] = &[
    "Future",
    "IntoFuture",
    "FusedFuture",
    "TryFuture",
    "Stream",
    "FusedStream",
    "TryStream",
    "AsyncIterator",
    "Iterator",
    "IntoIterator",
    "DoubleEndedIterator",
    "ExactSizeIterator",
    "FusedIterator",
];
const LAZY_TYPES: &[&str] = &["BoxFuture", "LocalBoxFuture", "BoxStream", "LocalBoxStream"];

/// Returns the block of the future at the end of the statements: `async {…}`, `Box::pin(async {…})`
/// (which `async_trait` generates) or `async {…}.boxed()`.
pub fn tail_future(stmts: &mut [Stmt]) -> Option<&mut Block> {
    let Some(Stmt::Expr(tail, None)) = stmts.last_mut() else { return None };
    let future = match tail {
        Expr::Call(call) if call.args.len() == 1 => {
            let Expr::Path(path) = &*call.func else { return None };
            if path.path.segments.last().is_none_or(|last| last.ident != "pin") {
                return None;
            }
            call.args.first_mut()?
        }
        Expr::MethodCall(call) => {
            if call.method != "boxed" && call.method != "boxed_local" {
                return None;
            }
            &mut *call.receiver
        }
        Expr::Async(future) => return Some(&mut future.block),
        _ => return None,
    };
    match future {
        Expr::Async(future) => Some(&mut future.block),
        _ => None,
    }
}

/// Strips references, `Option`, parentheses and macro fragments; `true` if one was a shared
/// reference.
pub fn peel(ty: &Type) -> (&Type, bool) {
    match ty {
        Type::Reference(reference) => {
            let (inner, shared) = peel(&reference.elem);
            (inner, shared || reference.mutability.is_none())
        }
        Type::Paren(paren) => peel(&paren.elem),
        Type::Group(group) => peel(&group.elem),
        Type::Path(path) => match argument(path, "Option") {
            Some(inner) => peel(inner),
            None => (ty, false),
        },
        _ => (ty, false),
    }
}

/// Returns the single type argument of a path that ends in the given name.
pub fn argument<'a>(path: &'a TypePath, name: &str) -> Option<&'a Type> {
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if last.ident == name && arguments.args.len() == 1 => {
            Some(ty)
        }
        _ => None,
    }
}

/// Splits an item into its header and the braces at its end.
pub fn split_body(item: TokenStream) -> (TokenStream, Option<Group>) {
    let mut trees: Vec<TokenTree> = item.into_iter().collect();
    let is_braces = |tree: &mut TokenTree| matches!(tree, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
    let body = match trees.pop_if(is_braces) {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    };
    (trees.into_iter().collect(), body)
}

/// Parses a function up to its body.
pub fn signature(input: ParseStream) -> syn::Result<(Vec<Attribute>, Signature)> {
    let attrs = Attribute::parse_outer(input)?;
    input.parse::<Visibility>()?;
    input.parse::<Option<Token![default]>>()?;
    let sig = input.parse()?;
    input.parse::<Option<Token![;]>>()?;
    Ok((attrs, sig))
}

/// Returns `true` for the attribute `naked`, whose function consists of assembly.
pub fn is_naked(attr: &Attribute) -> bool {
    mentions(&attr.meta.to_token_stream(), "naked")
}

/// Returns `true` if the body was already rewritten: it contains a block that starts like a
/// generated one.
fn has_site(body: TokenStream) -> bool {
    let mut start = body.clone().into_iter().filter_map(|tree| match tree {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    });
    let starts =
        ["fn", MARKER, "static", SITE].iter().all(|word| start.next().as_deref() == Some(word));
    starts
        || body.into_iter().any(|tree| matches!(tree, TokenTree::Group(g) if has_site(g.stream())))
}

/// Splits inner attributes and leading items from the other statements.
fn split_lead(body: TokenStream) -> (TokenStream, TokenStream) {
    let rest = |input: ParseStream| {
        input.call(Attribute::parse_inner)?;
        loop {
            let ahead = input.fork();
            match ahead.parse() {
                Ok(Stmt::Item(_)) => input.advance_to(&ahead),
                _ => return input.parse::<TokenStream>(),
            }
        }
    };
    let rest = rest.parse2(body.clone()).unwrap_or_else(|_| body.clone());
    let lead = body.clone().into_iter().count() - rest.clone().into_iter().count();
    (body.into_iter().take(lead).collect(), rest)
}
