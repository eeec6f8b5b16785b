//! Checks the keys, and skips their values.

use std::iter::Peekable;

use proc_macro::token_stream::IntoIter;
use proc_macro::{Delimiter, Spacing, Span, TokenStream, TokenTree};

use super::errors::CompileErrors;
use super::tokens::{is_punct, unraw};
use crate::keys::{self, Arity, Key};

type Tokens = Peekable<IntoIter>;

/// A known key, and its position.
pub type Given = (&'static str, Span);

/// Checks that every key is known, given once and has its value. Returns the keys.
pub fn check_keys(args: TokenStream, errors: &mut CompileErrors) -> Vec<Given> {
    let mut tokens = args.into_iter().peekable();
    let mut seen = Vec::new();
    while let Some(first) = tokens.next() {
        if let TokenTree::Group(fragment) = &first
            && fragment.delimiter() == Delimiter::None
        {
            // A `$key:meta` of `macro_rules!`.
            let rest: TokenStream = fragment.stream().into_iter().chain(tokens).collect();
            tokens = rest.into_iter().peekable();
            continue;
        }
        if is_punct(Some(&first), ',') {
            errors.at(first.span(), keys::EXPECTED_KEY);
            continue;
        }
        check_key(&first, &mut tokens, &mut seen, errors);
        skip_value(&mut tokens);
        tokens.next();
    }
    if let (Some((_, at)), true) = (seen.iter().find(|(key, _)| *key == keys::SKIP), seen.len() > 1)
    {
        errors.at(*at, keys::SKIP_ALONE);
    }
    seen
}

fn check_key(
    first: &TokenTree,
    tokens: &mut Tokens,
    seen: &mut Vec<Given>,
    errors: &mut CompileErrors,
) {
    let at = first.span();
    let TokenTree::Ident(name) = first else { return errors.at(at, keys::EXPECTED_KEY) };
    let key = match Key::find(&unraw(name)) {
        Ok(key) => key,
        Err(message) => return errors.at(at, &message),
    };
    let has_equals = match tokens.peek() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            return errors.at(at, &key.expected());
        }
        next if is_punct(next, ':') => return errors.at(at, &key.expected()),
        next => is_punct(next, '='),
    };
    if has_equals {
        tokens.next();
    }
    let next = tokens.peek();
    let is_at_end = next.is_none() || is_punct(next, ',');
    if has_equals && is_at_end {
        return errors.at(at, &key.missing_value());
    }
    if seen.iter().any(|(seen, _)| *seen == key.name) {
        return errors.at(at, &key.repeated());
    }
    seen.push((key.name, at));
    if key.arity == Arity::None && has_equals {
        let value = tokens.peek().map_or(at, TokenTree::span);
        errors.at(value, &key.takes_no_value());
    } else if key.arity == Arity::One && !has_equals {
        errors.at(at, &key.missing_value());
    } else if let (false, Some(next)) = (has_equals || is_at_end, next) {
        errors.at(next.span(), keys::EXPECTED_COMMA);
    }
}

/// Skips a value up to the comma that ends it. Commas between the angle brackets of a path and the
/// bars of a closure are part of the value.
pub fn skip_value(tokens: &mut Tokens) {
    /// Keywords after which an expression begins.
    const BEFORE_OPERAND: [&str; 9] =
        ["return", "break", "move", "async", "if", "while", "match", "in", "else"];
    let mut depth = 0_u32;
    // `true` where an operand is expected rather than an operator.
    let mut is_operand = true;
    // `true` in the type after `as`, where `<` always opens generics.
    let mut is_type = false;
    let mut last = ' ';
    while let Some(tree) = tokens.next_if(|tree| depth > 0 || !is_punct(Some(tree), ',')) {
        let is_inside = depth > 0;
        let TokenTree::Punct(punct) = &tree else {
            let word = tree.to_string();
            is_type |= !is_inside && word == "as";
            is_operand = BEFORE_OPERAND.contains(&word.as_str());
            last = ' ';
            continue;
        };
        let c = punct.as_char();
        match c {
            '<' if is_inside || is_operand || is_type || last == ':' => depth += 1,
            '>' if is_inside && last != '-' => depth -= 1,
            _ if is_inside => {}
            '|' if is_operand => {
                // The parameters of a closure.
                while tokens.next().is_some_and(|tree| !is_punct(Some(&tree), '|')) {}
            }
            '<' | '|' if punct.spacing() == Spacing::Joint => {
                // One operator, `<<` or `||`.
                tokens.next_if(|next| is_punct(Some(next), c));
            }
            _ => {}
        }
        let is_arrow = c == '-' && is_punct(tokens.peek(), '>');
        is_type &= is_inside || is_arrow || matches!(c, ':' | '*' | '&' | '<' | '>' | '\'');
        is_operand = !is_inside && depth == 0 && !matches!(c, '?' | '.' | ':');
        last = c;
    }
}
