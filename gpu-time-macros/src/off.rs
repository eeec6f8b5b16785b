//! The attribute without the feature `enabled`: checks the keys and the item, and returns the item
//! unchanged.
//!
//! Written with `proc_macro` alone. Values are skipped, not parsed: the compiler of an enabled build
//! checks those.

use std::iter::Peekable;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::rules::{self, Item, Key};

type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

/// Returns the item, followed by one `compile_error!` for each mistake.
pub fn checked(args: TokenStream, mut item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    check_keys(args, &mut errors);
    check_item(flat(item.clone()), &mut errors);
    item.extend(errors.0);
    item
}

#[derive(Default)]
struct Errors(TokenStream);

impl Errors {
    fn at(&mut self, span: Span, message: &str) {
        self.between(span, span, message);
    }

    /// Adds an error that points at everything from `start` to `end`.
    fn between(&mut self, start: Span, end: Span, message: &str) {
        let punct = |c, spacing| TokenTree::from(Punct::new(c, spacing));
        let mut text = TokenTree::from(Literal::string(message));
        text.set_span(end);
        let tokens = [
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            Ident::new("core", start).into(),
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            Ident::new("compile_error", start).into(),
            punct('!', Spacing::Alone),
        ];
        self.0.extend(tokens.map(|mut tree| {
            tree.set_span(start);
            tree
        }));
        let mut braces = TokenTree::from(Group::new(Delimiter::Brace, text.into()));
        braces.set_span(end);
        self.0.extend([braces]);
    }
}

/// Checks that every key is known, given once and has its value.
fn check_keys(args: TokenStream, errors: &mut Errors) {
    let mut tokens = args.into_iter().peekable();
    let mut seen = Vec::new();
    while let Some(first) = tokens.next() {
        if is_punct(Some(&first), ',') {
            errors.at(first.span(), rules::EXPECTED_KEY);
            continue;
        }
        check_key(&first, &mut tokens, &mut seen, errors);
        skip_value(&mut tokens);
        tokens.next();
    }
}

fn check_key(
    first: &TokenTree,
    tokens: &mut Tokens,
    seen: &mut Vec<&'static str>,
    errors: &mut Errors,
) {
    let at = first.span();
    let TokenTree::Ident(name) = first else { return errors.at(at, rules::EXPECTED_KEY) };
    let key = match Key::find(&unraw(name)) {
        Ok(key) => key,
        Err(message) => return errors.at(at, &message),
    };
    let has_equals = match tokens.peek() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            return errors.at(at, &key.expected());
        }
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
    if seen.contains(&key.name) {
        return errors.at(at, &key.repeated());
    }
    seen.push(key.name);
    if key.needs_value && !has_equals {
        errors.at(at, &key.missing_value());
    } else if let (false, Some(next)) = (has_equals || is_at_end, next) {
        errors.at(next.span(), rules::EXPECTED_COMMA);
    }
}

/// Skips a value up to the comma that ends it. Commas between the angle brackets of a path and the
/// bars of a closure are part of the value.
fn skip_value(tokens: &mut Tokens) {
    /// Keywords after which an expression begins.
    const BEFORE_OPERAND: [&str; 9] =
        ["return", "break", "move", "async", "if", "while", "match", "in", "else"];
    let mut depth = 0_u32;
    // An operand is expected here rather than an operator.
    let mut is_operand = true;
    // In the type after `as`, where `<` always opens generics.
    let mut is_type = false;
    let mut last = ' ';
    while let Some(tree) = tokens.next_if(|tree| depth > 0 || !is_punct(Some(tree), ',')) {
        let TokenTree::Punct(punct) = &tree else {
            let word = tree.to_string();
            is_type |= word == "as";
            is_operand = BEFORE_OPERAND.contains(&word.as_str());
            last = ' ';
            continue;
        };
        let c = punct.as_char();
        let is_inside = depth > 0;
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
        is_type = is_type && matches!(c, ':' | '*' | '&' | '<' | '>');
        is_operand = !is_inside && depth == 0 && !matches!(c, '?' | '.' | ':');
        last = c;
    }
}

/// Checks that the item is a function with a body, not `const`, not naked and annotated once.
fn check_item(trees: Vec<TokenTree>, errors: &mut Errors) {
    let header = || {
        trees.iter().filter_map(|tree| match tree {
            TokenTree::Ident(word) => Some(word),
            _ => None,
        })
    };
    let words: Vec<String> = header().map(Ident::to_string).collect();
    let span = |at| header().nth(at).map_or_else(Span::call_site, Ident::span);
    let function = match rules::item(&words) {
        Item::Function(at) => at,
        Item::Other(at) => {
            let message = rules::not_a_function(words.get(at).map(String::as_str));
            return errors.at(span(at), &message);
        }
        Item::Unknown => return errors.at(Span::call_site(), &rules::not_a_function(None)),
    };
    let name = span(function + 1);
    if !matches!(trees.last(), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Brace) {
        return errors.at(name, rules::NO_BODY);
    }
    if let Some(at) = words.iter().take(function).position(|word| word == "const") {
        errors.at(span(at), rules::CONST_FN);
    }
    for (hash, next) in trees.iter().zip(trees.iter().skip(1)) {
        let TokenTree::Group(attr) = next else { continue };
        if !is_punct(Some(hash), '#') || attr.delimiter() != Delimiter::Bracket {
            continue;
        }
        if mentions(attr.stream(), "naked") {
            errors.between(hash.span(), next.span(), rules::NAKED_FN);
        }
        if is_ours(attr.stream()) {
            errors.at(name, rules::REPEATED_ATTRIBUTE);
        }
    }
}

/// Returns `true` for the tokens of `gpu_timed` or of a path to it, with or without arguments.
fn is_ours(attr: TokenStream) -> bool {
    let path = attr
        .into_iter()
        .take_while(|tree| matches!(tree, TokenTree::Ident(_)) || is_punct(Some(tree), ':'));
    path.last().is_some_and(|last| last.to_string() == "gpu_timed")
}

fn mentions(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident.to_string() == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

/// The tokens without the invisible delimiters that `macro_rules!` puts around its fragments.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let mut trees = Vec::new();
    for tree in tokens {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                trees.extend(flat(group.stream()));
            }
            tree => trees.push(tree),
        }
    }
    trees
}

fn is_punct(tree: Option<&TokenTree>, c: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

fn unraw(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}
