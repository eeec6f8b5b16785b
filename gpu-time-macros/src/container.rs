//! An annotated `impl`, `trait` or `mod`, which passes its keys on to its members.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::token::Brace;
use syn::{Attribute, ImplItem, Item, Meta, Signature, TraitItem};

use crate::args::{Args, between};
use crate::awaits::await_in;
use crate::conflicts::conflicts;
use crate::errors::Errors;
use crate::fragments::visible;
use crate::func::{is_naked, signature, split_body};
use crate::inherited::{handed_on, is_own};
use crate::source::no_await;

/// The annotated item, with its members.
pub struct Container {
    header: TokenStream,
    braces: Group,
    /// Inner attributes.
    lead: TokenStream,
    members: Vec<Member>,
}

/// An item inside the braces.
struct Member {
    attrs: TokenStream,
    item: TokenStream,
    /// The member is a function to time or a nested container, and inherits the keys.
    inherits: bool,
}

impl Container {
    /// Parses the item with this keyword, and checks that a container can have the keys.
    pub fn parse(
        keyword: &Ident,
        item: TokenStream,
        args: &Args,
        errors: &mut Errors,
    ) -> Option<Container> {
        let kind = keyword.to_string();
        if let Some(name) = &args.name {
            errors.at(
                &name.key,
                format!("`name` is for one function: give it to a function in this `{kind}`"),
            );
        }
        conflicts(args, errors);
        for arg in [&args.stream, &args.series, &args.bytes, &args.flops].into_iter().flatten() {
            if let Some(at) = await_in(&arg.value) {
                errors.at(at, no_await(&arg.key));
            }
        }
        let (header, braces) = split_body(item);
        let Some(braces) = braces else {
            errors.at(
                keyword,
                "the functions of this `mod` are in another file: annotate them there",
            );
            return None;
        };
        let attrs = Attribute::parse_outer.parse2(attributes(&header)).unwrap_or_default();
        if attrs.iter().any(is_own) {
            errors.at(keyword, format!("`#[gpu_timed]` is given twice for this `{kind}`"));
        }
        let members = |input: ParseStream| members(&kind, input);
        match members.parse2(visible(braces.stream())) {
            Ok((lead, members)) => Some(Container { header, braces, lead, members }),
            Err(error) => {
                errors.push(error);
                None
            }
        }
    }

    /// Generates the item. Every function and container in it inherits the keys.
    pub fn expand(self, args: &Args) -> TokenStream {
        let Container { header, braces, lead, members } = self;
        let attribute = handed_on(args);
        let members = members.iter().map(|Member { attrs, item, inherits }| {
            let attribute = inherits.then_some(&attribute);
            quote!(#attrs #attribute #item)
        });
        let mut body = Group::new(Delimiter::Brace, quote!(#lead #(#members)*));
        body.set_span(braces.span());
        quote!(#header #body)
    }
}

/// Returns the attributes at the start of an item.
fn attributes(header: &TokenStream) -> TokenStream {
    let is_part = |tree: &TokenTree| match tree {
        TokenTree::Punct(hash) => hash.as_char() == '#',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Bracket,
        _ => false,
    };
    header.clone().into_iter().take_while(is_part).collect()
}

fn members(kind: &str, input: ParseStream) -> syn::Result<(TokenStream, Vec<Member>)> {
    let start = input.cursor();
    Attribute::parse_inner(input)?;
    let lead = between(start, input.cursor());
    let mut members = Vec::new();
    while !input.is_empty() {
        let start = input.cursor();
        let attrs = Attribute::parse_outer(input)?;
        let after = input.cursor();
        let inherits = member(kind, &attrs, input)?;
        members.push(Member {
            attrs: between(start, after),
            item: between(after, input.cursor()),
            inherits,
        });
    }
    Ok((lead, members))
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
