//! The attribute, `scope!` and `guard!` without the feature `enabled`: check the keys and the item, and
//! return the user's code unchanged.
//!
//! Written with `proc_macro` alone. Values are skipped, not parsed: the compiler checks them in an
//! enabled build.

mod errors;
mod item;
mod keys;
mod tokens;

use std::str::FromStr;

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::items;
use crate::keys::{NAME_IS_FIRST, SKIP, SKIPPED_BLOCK, unseen_by_guard};
use errors::CompileErrors;
use item::check_item;
use keys::{Given, check_keys, skip_value};
use tokens::{flat, is_braces, is_punct};

/// Returns the item, followed by one `compile_error!` for each mistake.
pub fn checked(args: TokenStream, mut item: TokenStream) -> TokenStream {
    let mut errors = CompileErrors::default();
    let keys = check_keys(args, &mut errors);
    let is_item = check_item(&flat(item.clone()), &keys, &mut errors);
    if !is_item {
        // Nothing can follow an expression, so the errors replace it.
        return errors.into_tokens();
    }
    item.extend(errors.into_tokens());
    item
}

/// Returns the block of `scope!`.
pub fn scope(input: TokenStream) -> TokenStream {
    let mut errors = CompileErrors::default();
    let mut trees = flat(input);
    trees.pop_if(|last| is_punct(Some(last), ','));
    let block = trees.pop_if(|last| is_braces(last));
    match &block {
        Some(_) => _ = check_block(trees, items::SCOPE_NAME, &mut errors),
        None => errors.at(Span::call_site(), items::NO_BLOCK),
    }
    let Some(TokenTree::Group(block)) = block else { return errors.into_tokens() };
    // The item stands in for the code of an enabled build, so that lints about unnecessary braces
    // give the same results.
    let mut body: TokenStream = TokenStream::from_str("const _: () = ();").unwrap_or_default();
    body.extend(errors.into_tokens());
    // As a whole, because the compiler forgets where the fragments of `macro_rules!` begin and end if
    // their neighbours come one by one.
    body.extend([block.stream()]);
    let mut braces = Group::new(Delimiter::Brace, body);
    braces.set_span(block.span());
    TokenTree::from(braces).into()
}

/// Returns a guard that does nothing.
pub fn guard(input: TokenStream) -> TokenStream {
    /// Has a destructor, like the guard of an enabled build, so that it may be dropped early.
    const GUARD: &str = "{
        #[must_use = \"the call ends when the guard is dropped\"]
        struct Guard;
        impl ::core::ops::Drop for Guard {
            #[inline(always)]
            fn drop(&mut self) {}
        }
        Guard
    }";
    let mut errors = CompileErrors::default();
    let keys = check_block(input.into_iter().collect(), items::GUARD_NAME, &mut errors);
    for (key, at) in keys.iter().filter(|(key, _)| ["graph", "launch"].contains(key)) {
        errors.at(*at, &unseen_by_guard(key));
    }
    let errors = errors.into_tokens();
    match errors.is_empty() {
        true => TokenStream::from_str(GUARD).unwrap_or_default(),
        false => TokenTree::from(Group::new(Delimiter::Brace, errors)).into(),
    }
}

/// Checks the name and the keys of a block. Returns the keys.
fn check_block(trees: Vec<TokenTree>, usage: &str, errors: &mut CompileErrors) -> Vec<Given> {
    let is_key = matches!(trees.first(), Some(TokenTree::Ident(_))) && is_punct(trees.get(1), '=');
    if is_key || trees.is_empty() {
        errors.at(trees.first().map_or_else(Span::call_site, TokenTree::span), usage);
        return Vec::new();
    }
    let mut tokens = TokenStream::from_iter(trees).into_iter().peekable();
    skip_value(&mut tokens);
    tokens.next();
    let keys = check_keys(tokens.collect(), errors);
    for (key, at) in &keys {
        match *key {
            "name" => errors.at(*at, NAME_IS_FIRST),
            SKIP => errors.at(*at, SKIPPED_BLOCK),
            _ => {}
        }
    }
    keys
}
