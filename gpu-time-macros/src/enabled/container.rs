//! An annotated `impl`, `trait` or `mod`, which passes its keys on to its members.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::token::Brace;
use syn::{Attribute, ImplItem, Item, Meta, Signature, TraitItem};

use crate::enabled::args::{Args, between};
use crate::enabled::conflicts::conflicts;
use crate::enabled::errors::Errors;
use crate::enabled::fragments::visible;
use crate::enabled::func::{is_naked, signature, split_body};
use crate::enabled::inherited::{handed_on, is_own};
use crate::enabled::source::no_awaits;

/// Expands the item with this keyword. Every function and container in it inherits the keys. Returns `None` after an
/// error.
pub fn expand(
    keyword: &Ident,
    item: TokenStream,
    args: &Args,
    errors: &mut Errors,
) -> Option<TokenStream> {
    let kind = keyword.to_string();
    if args.name.is_some() {
        let message = format!("`name` is for one function: give it to a function in this `{kind}`");
        errors.at(args.key("name"), message);
    }
    conflicts(args, errors);
    let Args { stream, series, bytes, flops, .. } = args;
    let values = [("stream", stream), ("key", series), ("bytes", bytes), ("flops", flops)];
    no_awaits(&values, errors);
    let (header, braces) = split_body(item);
    let Some(braces) = braces else {
        let message = "the functions of this `mod` are in another file: annotate them there";
        errors.at(keyword, message);
        return None;
    };
    let outer = |input: ParseStream| {
        let attrs = input.call(Attribute::parse_outer)?;
        input.parse::<TokenStream>().map(|_| attrs)
    };
    let attrs = outer.parse2(header.clone()).unwrap_or_default();
    if attrs.iter().any(is_own) {
        errors.at(keyword, format!("`#[gpu_timed]` is given twice for this `{kind}`"));
    }
    let attribute = handed_on(args);
    let members = |input: ParseStream| members(&kind, &attribute, input);
    let body = members.parse2(visible(braces.stream())).map_err(|error| errors.push(error)).ok()?;
    let mut body = Group::new(Delimiter::Brace, body);
    body.set_span(braces.span());
    errors.is_empty().then(|| quote!(#header #body))
}

/// Returns the members, with the attribute on those that inherit the keys.
fn members(kind: &str, attribute: &TokenStream, input: ParseStream) -> syn::Result<TokenStream> {
    let start = input.cursor();
    Attribute::parse_inner(input)?;
    let mut members = between(start, input.cursor());
    while !input.is_empty() {
        let start = input.cursor();
        let attrs = Attribute::parse_outer(input)?;
        let after = input.cursor();
        let inherits = member(kind, &attrs, input)?;
        members.extend(between(start, after));
        members.extend(inherits.then(|| attribute.clone()));
        members.extend(between(after, input.cursor()));
    }
    Ok(members)
}

/// Consumes an item after its attributes. Returns `true` if it inherits the keys.
fn member(kind: &str, attrs: &[Attribute], input: ParseStream) -> syn::Result<bool> {
    let ahead = input.fork();
    if let Ok((sig, has_body)) = function(&ahead) {
        input.advance_to(&ahead);
        return Ok(has_body && (attrs.iter().any(is_own) || is_timed(attrs, &sig)));
    }
    match kind {
        "impl" => input.parse::<ImplItem>().map(|_| false),
        "trait" => input.parse::<TraitItem>().map(|_| false),
        _ => Ok(match input.parse()? {
            Item::Impl(_) | Item::Trait(_) => true,
            Item::Mod(module) => {
                let is_left_out = attrs.iter().any(is_cfg_test) && !attrs.iter().any(is_own);
                module.content.is_some() && !is_left_out
            }
            _ => false,
        }),
    }
}

/// Parses a function. Its body may contain syntax that `syn` does not know.
fn function(input: ParseStream) -> syn::Result<(Signature, bool)> {
    let (_, sig) = signature(input)?;
    let has_body = input.peek(Brace);
    if has_body {
        input.parse::<TokenTree>()?;
    }
    Ok((sig, has_body))
}

/// Returns `true` for a function that can be timed and is not a test. The functions that a test
/// calls are timed instead.
fn is_timed(attrs: &[Attribute], sig: &Signature) -> bool {
    let is_left_out = |attr: &Attribute| {
        let last = attr.path().segments.last();
        is_naked(attr) || last.is_some_and(|last| last.ident == "test" || last.ident == "bench")
    };
    sig.constness.is_none() && !attrs.iter().any(is_left_out)
}

fn is_cfg_test(attr: &Attribute) -> bool {
    match &attr.meta {
        Meta::List(list) => attr.path().is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    }
}
