//! The attribute, `scope!` and `guard!` without the feature `enabled`: the user's code unchanged, with
//! errors for unknown and repeated keys and for items that cannot be annotated.
//!
//! Written with `proc_macro` alone. Everything else is checked in an enabled build.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::items::{self, Item};
use crate::keys::Key;
use crate::unbound;

/// Returns the item, followed by the errors.
pub fn attribute(args: TokenStream, item: TokenStream) -> TokenStream {
    let errors = check_keys(&flat(args));
    let header = flat(item.clone()).into_iter().filter_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    let header: Vec<Ident> = header.collect();
    let words: Vec<String> = header.iter().map(Ident::to_string).collect();
    match items::item(&words) {
        Item::Function(_) | Item::Container(_) => item.into_iter().chain(errors).collect(),
        Item::Other(at) => {
            let (keyword, word) = (header.get(at), words.get(at).map(String::as_str));
            let at = keyword.map_or_else(Span::call_site, Ident::span);
            let error = error(at, &items::not_annotated(word));
            item.into_iter().chain(errors).chain(error).collect()
        }
        // Nothing can follow an expression, so the errors replace it.
        Item::Unknown => {
            let error = error(Span::call_site(), &items::not_annotated(None));
            errors.into_iter().chain(error).collect()
        }
    }
}

/// Returns the block of `scope!`.
pub fn scope(input: TokenStream) -> TokenStream {
    let mut trees = flat(input);
    trees.pop_if(|last| is_punct(last, ','));
    let block = match trees.pop() {
        Some(TokenTree::Group(block)) if block.delimiter() == Delimiter::Brace => block,
        _ => return error(Span::call_site(), items::NO_BLOCK),
    };
    // The item stands in for the code of an enabled build, so that lints about unnecessary braces
    // give the same results.
    let mut body: TokenStream = "const _: () = ();".parse().unwrap_or_default();
    body.extend(check_keys(after_name(&trees)));
    // As a whole, because the compiler forgets where the fragments of `macro_rules!` begin and end if
    // their neighbours come one by one.
    body.extend([block.stream()]);
    let mut braces = Group::new(Delimiter::Brace, body);
    braces.set_span(block.span());
    TokenTree::from(braces).into()
}

/// Returns a guard that does nothing.
pub fn guard(input: TokenStream, is_unbound: bool) -> TokenStream {
    /// Has a destructor, like the guard of an enabled build, so that it may be dropped early.
    const GUARD: &str = "
        #[must_use = \"the call ends when the guard is dropped\"]
        struct Guard;
        impl ::core::ops::Drop for Guard {
            #[inline(always)]
            fn drop(&mut self) {}
        }
        Guard
    ";
    let mut body = check_keys(after_name(&flat(input)));
    if is_unbound {
        body.extend(error(Span::call_site(), unbound::MESSAGE));
    }
    body.extend(GUARD.parse::<TokenStream>());
    TokenTree::from(Group::new(Delimiter::Brace, body)).into()
}

/// Returns the keys of a block, which follow its name.
fn after_name(trees: &[TokenTree]) -> &[TokenTree] {
    trees.splitn(2, |tree| is_punct(tree, ',')).nth(1).unwrap_or_default()
}

/// Returns errors for unknown and repeated keys: identifiers before `=`, `,` and the end.
fn check_keys(trees: &[TokenTree]) -> TokenStream {
    // Behind these, a comma may be part of a type or of a closure.
    let is_open = |tree: &TokenTree| is_punct(tree, '<') || is_punct(tree, '|');
    let checked = trees.split(is_open).next().unwrap_or_default();
    let (mut seen, mut errors) = (Vec::new(), TokenStream::new());
    for pair in checked.split(|tree| is_punct(tree, ',')) {
        let word = match pair {
            [TokenTree::Ident(word)] => word,
            [TokenTree::Ident(word), equals, ..] if is_punct(equals, '=') => word,
            _ => continue,
        };
        let text = word.to_string();
        match Key::find(text.strip_prefix("r#").unwrap_or(&text)) {
            Err(message) => errors.extend(error(word.span(), &message)),
            Ok(key) if seen.contains(&key.name) => {
                errors.extend(error(word.span(), &key.repeated()));
            }
            Ok(key) => seen.push(key.name),
        }
    }
    errors
}

/// Returns a `compile_error!` at this position.
fn error(at: Span, message: &str) -> TokenStream {
    let code = format!("::core::compile_error! {{ {message:?} }}");
    let tokens: TokenStream = code.parse().unwrap_or_default();
    let located = tokens.into_iter().map(|mut tree| {
        tree.set_span(at);
        tree
    });
    located.collect()
}

/// Returns the tokens without the invisible delimiters that `macro_rules!` puts around its
/// fragments.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let trees = tokens.into_iter().flat_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
        tree => vec![tree],
    });
    trees.collect()
}

fn is_punct(tree: &TokenTree, c: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == c)
}
