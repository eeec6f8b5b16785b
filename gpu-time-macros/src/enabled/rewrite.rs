//! The attribute as a function on tokens.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

use crate::enabled::args::Args;
use crate::enabled::container;
use crate::enabled::errors::Errors;
use crate::enabled::expand::expand;
use crate::enabled::fragments::{visible, visible_inside};
use crate::enabled::func::{TimedFn, split_body};
use crate::enabled::inherited::Keys;
use crate::enabled::plan::Plan;
use crate::items::{self, Item};

/// Rewrites the item. If there are errors, returns the item untimed, followed by all of them. Either
/// way it has lost the attribute with inherited keys, and its fragments of `macro_rules!` are visible.
pub fn rewrite(args: TokenStream, item: TokenStream) -> TokenStream {
    let (mut keys, item) = Keys::take(visible_inside(args), visible(item));
    loop {
        let mut errors = keys.errors();
        let args = keys.parse(&mut errors);
        let output = rewritten(args, &item, &mut errors);
        // Try again without the inherited keys that do not apply to this function.
        if keys.remove(errors.unfit()) {
            continue;
        }
        // A function that returns early is left untimed without an error if only the item around it
        // is annotated.
        if errors.returns_early && !keys.has_own {
            return item;
        }
        return output.unwrap_or_else(|| {
            let is_expression = errors.is_expression;
            let errors = errors.into_tokens();
            if is_expression { errors } else { quote!(#item #errors) }
        });
    }
}

/// Returns the new item; `None` if there are errors.
fn rewritten(args: Args, item: &TokenStream, errors: &mut Errors) -> Option<TokenStream> {
    let container = keyword(item, errors)?;
    if args.skip {
        if args.given.len() > 1 {
            errors.about(
                &args.other_keys(),
                args.key("skip"),
                "`skip` conflicts with every other key: it leaves the item untimed",
            );
        }
        return errors.is_empty().then(|| item.clone());
    }
    match container {
        Some(keyword) => container::expand(&keyword, item.clone(), &args, errors),
        None => {
            let func = TimedFn::parse(item.clone(), errors);
            func.and_then(|func| Plan::new(args, func, errors)).map(expand)
        }
    }
}

/// Returns the keyword of an `impl`, `trait` or `mod`; `Some(None)` for a function. Reports all other tokens.
fn keyword(item: &TokenStream, errors: &mut Errors) -> Option<Option<Ident>> {
    let (header, _) = split_body(item.clone());
    let words = header.into_iter().filter_map(|tree| match tree {
        TokenTree::Ident(ident) => Some(ident),
        _ => None,
    });
    let words: Vec<Ident> = words.collect();
    let texts: Vec<String> = words.iter().map(Ident::to_string).collect();
    let keyword = match items::item(&texts) {
        Item::Function(_) => return Some(None),
        Item::Container(at) => return Some(words.get(at).cloned()),
        Item::Other(at) => words.get(at),
        Item::Unknown => None,
    };
    let message = items::not_annotated(keyword.map(Ident::to_string).as_deref());
    errors.push(syn::Error::new(keyword.map_or_else(Span::call_site, Ident::span), message));
    errors.is_expression = keyword.is_none();
    None
}
