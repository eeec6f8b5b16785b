//! `scope!` and `guard!` as functions on tokens. They time a block, or the rest of one, as if it
//! were an annotated function.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, Ident, Token};

use crate::enabled::args::{Args, Scope};
use crate::enabled::errors::Errors;
use crate::enabled::expand::{expand, expand_guard};
use crate::enabled::fragments::{visible, visible_inside};
use crate::enabled::func::{TimedFn, split_body};
use crate::enabled::plan::Plan;
use crate::enabled::values;
use crate::items::NO_BLOCK;
use crate::unbound;

/// Expands `scope!("name", …keys…, { block })` to the block. If there are errors, the block is
/// unchanged.
pub fn scope(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let (input, block) = split_block(visible(input));
    let Some(block) = block else {
        errors.push(syn::Error::new(Span::call_site(), NO_BLOCK));
        return errors.into_tokens();
    };
    let braces = block.span();
    let args = args(input, "expected a name first: `scope!(\"name\", { … })`", &mut errors);
    let plan =
        args.and_then(|(name, args)| Plan::new(args, TimedFn::of_block(name, &block), &mut errors));
    plan.map(expand).unwrap_or_else(|| {
        let (errors, body) = (errors.into_tokens(), block.stream());
        let mut output = Group::new(Delimiter::Brace, quote!(const _: () = (); #errors #body));
        output.set_span(braces);
        quote!(#output)
    })
}

/// Expands `guard!("name", …keys…)` to an expression that creates the guard of a call.
pub fn guard(input: TokenStream, is_unbound: bool) -> TokenStream {
    let mut errors = Errors::default();
    if is_unbound {
        errors.push(syn::Error::new(Span::call_site(), unbound::MESSAGE));
    }
    let args = args(input, "expected a name first: `guard!(\"name\")`", &mut errors).filter(
        |(_, args)| {
            let scope = (args.scope == Some(Scope::Launches)).then_some("scope");
            for name in ["graph", "launch"].into_iter().chain(scope) {
                if let Some(key) = args.key(name) {
                    let message = format!(
                        "`{name}` needs visible launches, and a guard sees none: write \
                     `scope!(\"name\", {{ … }})`"
                    );
                    errors.at(key, message);
                }
            }
            errors.is_empty()
        },
    );
    let plan = args.and_then(|(name, args)| {
        let nothing = Group::new(Delimiter::Brace, TokenStream::new());
        Plan::new(args, TimedFn::of_block(name, &nothing), &mut errors)
    });
    plan.map_or_else(
        || {
            let errors = errors.into_tokens();
            quote!({ #errors })
        },
        |plan| expand_guard(&plan),
    )
}

/// Parses the name and the keys. Also returns the span of the name.
fn args(input: TokenStream, usage: &str, errors: &mut Errors) -> Option<(Span, Args)> {
    let split = |input: ParseStream| {
        if input.is_empty() || input.peek(Ident) && input.peek2(Token![=]) {
            return Err(syn::Error::new(input.span(), usage));
        }
        let name: Expr = input.parse()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((name, input.parse::<TokenStream>()?))
    };
    let (name, keys) = match split.parse2(visible_inside(input)) {
        Ok(split) => split,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let mut args = Args::parse(keys, errors);
    if args.name.is_some() {
        errors.at(args.key("name"), "`name` is given twice: the first argument is the name");
    }
    if args.skip {
        errors.at(args.key("skip"), "`skip` leaves a function out, and cannot be used here");
    }
    let at = name.span();
    match values::name(name) {
        Ok(name) => args.name = Some(name),
        Err(error) => errors.push(error),
    }
    errors.is_empty().then_some((at, args))
}

/// Splits off the block at the end, and removes the commas around it.
fn split_block(input: TokenStream) -> (TokenStream, Option<Group>) {
    let without_comma = |tokens: TokenStream| -> TokenStream {
        let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
        trees.pop_if(|tree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ','));
        trees.into_iter().collect()
    };
    let (keys, block) = split_body(without_comma(input));
    (without_comma(keys), block)
}
