//! Checks the item under the attribute.

use proc_macro::{Delimiter, Group, Ident, Span, TokenTree};

use super::errors::CompileErrors;
use super::keys::Given;
use super::tokens::{is_braces, is_punct, mentions};
use crate::items::{self, Item};
use crate::keys::{SKIP, name_of_container};

/// Checks that the item is a function that can be timed, or an `impl`, `trait` or `mod`, and is
/// annotated once. Returns `false` for a statement or an expression.
pub fn check_item(trees: &[TokenTree], keys: &[Given], errors: &mut CompileErrors) -> bool {
    let header: Vec<&Ident> = trees
        .iter()
        .filter_map(|tree| match tree {
            TokenTree::Ident(word) => Some(word),
            _ => None,
        })
        .collect();
    let words: Vec<String> = header.iter().map(ToString::to_string).collect();
    let span = |at: usize| header.get(at).map_or_else(Span::call_site, |word| word.span());
    let keyword = |at: usize| words.get(at).map(String::as_str);
    match items::item(&words) {
        // A skipped item need not be one that can be timed.
        Item::Function(_) | Item::Container(_) if keys.iter().any(|(key, _)| *key == SKIP) => {}
        Item::Function(at) => {
            let constant = words.iter().take(at).position(|word| word == "const").map(span);
            check_function(trees, span(at + 1), constant, errors);
        }
        Item::Container(at) => {
            check_container(trees, keyword(at).unwrap_or_default(), span(at), keys, errors);
        }
        Item::Other(at) => errors.at(span(at), &items::not_annotated(keyword(at))),
        Item::Unknown => {
            errors.at(Span::call_site(), &items::not_annotated(None));
            return false;
        }
    }
    true
}

/// Checks that a function has a body, is neither `const` nor naked, and has one attribute. Takes the
/// positions of its name and of its `const`.
fn check_function(
    trees: &[TokenTree],
    name: Span,
    constant: Option<Span>,
    errors: &mut CompileErrors,
) {
    if !trees.last().is_some_and(is_braces) {
        return errors.at(name, items::NO_BODY);
    }
    if let Some(constant) = constant {
        errors.at(constant, items::CONST_FN);
    }
    for (hash, attr) in attributes(trees) {
        if mentions(attr.stream(), "naked") {
            errors.between(hash, attr.span(), items::NAKED_FN);
        }
        if is_ours(attr) {
            errors.at(name, items::REPEATED_ATTRIBUTE);
        }
    }
}

/// Checks that an `impl`, `trait` or `mod` has a body, no `name`, and one attribute.
fn check_container(
    trees: &[TokenTree],
    keyword: &str,
    at: Span,
    keys: &[Given],
    errors: &mut CompileErrors,
) {
    if let Some((_, name)) = keys.iter().find(|(key, _)| *key == "name") {
        errors.at(*name, &name_of_container(keyword));
    }
    if !trees.last().is_some_and(is_braces) {
        errors.at(at, items::NO_CONTENT);
    }
    if attributes(trees).any(|(_, attr)| is_ours(attr)) {
        errors.at(at, &items::repeated_on(keyword));
    }
}

/// Returns the attributes of the item: the position of each `#`, and the brackets after it.
fn attributes(trees: &[TokenTree]) -> impl Iterator<Item = (Span, &Group)> {
    trees.iter().zip(trees.iter().skip(1)).filter_map(|(hash, next)| match next {
        TokenTree::Group(attr) if attr.delimiter() == Delimiter::Bracket => {
            is_punct(Some(hash), '#').then(|| (hash.span(), attr))
        }
        _ => None,
    })
}

/// Returns `true` for `#[gpu_timed]` by any path, with or without arguments.
fn is_ours(attr: &Group) -> bool {
    let path = attr
        .stream()
        .into_iter()
        .take_while(|tree| matches!(tree, TokenTree::Ident(_)) || is_punct(Some(tree), ':'));
    path.last().is_some_and(|last| last.to_string() == "gpu_timed")
}
