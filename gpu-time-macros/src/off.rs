//! The attribute without the feature `enabled`: checks the keys and the item, and returns the item
//! unchanged.
//!
//! Written with `proc_macro` alone. Values are skipped, not parsed: the compiler checks them in an
//! enabled build.

use std::iter::Peekable;
use std::str::FromStr;

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::rules::{self, Item, Key};

type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

/// Returns the item, followed by one `compile_error!` for each mistake.
pub fn checked(args: TokenStream, mut item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let keys = check_keys(args, &mut errors);
    let is_item = check_item(flat(item.clone()), &keys, &mut errors);
    if !is_item {
        // Nothing can follow an expression, so the errors replace it.
        return errors.0;
    }
    item.extend(errors.0);
    item
}

/// Returns the block of `scope!`.
pub fn scope(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut trees: Vec<TokenTree> = input.into_iter().collect();
    trees.pop_if(|last| is_punct(Some(last), ','));
    let block = trees.pop_if(|last| is_braces(last));
    match &block {
        Some(_) => _ = check_block(trees, rules::SCOPE_NAME, &mut errors),
        None => errors.at(Span::call_site(), rules::NO_BLOCK),
    }
    let Some(TokenTree::Group(block)) = block else { return errors.0 };
    // The item stands in for the code of an enabled build, so that lints about unnecessary braces
    // give the same results.
    let mut body: TokenStream = TokenStream::from_str("const _: () = ();").unwrap_or_default();
    body.extend(errors.0);
    body.extend(block.stream());
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
    let mut errors = Errors::default();
    let keys = check_block(input.into_iter().collect(), rules::GUARD_NAME, &mut errors);
    for (key, at) in keys.iter().filter(|(key, _)| ["graph", "launch"].contains(key)) {
        errors.at(*at, &rules::unseen_by_guard(key));
    }
    match errors.0.is_empty() {
        true => TokenStream::from_str(GUARD).unwrap_or_default(),
        false => TokenTree::from(Group::new(Delimiter::Brace, errors.0)).into(),
    }
}

/// Checks the name and the keys of a block. Returns the keys.
fn check_block(
    trees: Vec<TokenTree>,
    usage: &str,
    errors: &mut Errors,
) -> Vec<(&'static str, Span)> {
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
            "name" => errors.at(*at, rules::NAME_IS_FIRST),
            rules::SKIP => errors.at(*at, rules::SKIPPED_BLOCK),
            _ => {}
        }
    }
    keys
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

/// Checks that every key is known, given once and has its value. Returns the keys.
fn check_keys(args: TokenStream, errors: &mut Errors) -> Vec<(&'static str, Span)> {
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
    if let (Some((_, at)), true) =
        (seen.iter().find(|(key, _)| *key == rules::SKIP), seen.len() > 1)
    {
        errors.at(*at, rules::SKIP_ALONE);
    }
    seen
}

fn check_key(
    first: &TokenTree,
    tokens: &mut Tokens,
    seen: &mut Vec<(&'static str, Span)>,
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
    if seen.iter().any(|(seen, _)| *seen == key.name) {
        return errors.at(at, &key.repeated());
    }
    seen.push((key.name, at));
    if key.name == rules::SKIP && has_equals {
        let value = tokens.peek().map_or(at, TokenTree::span);
        errors.at(value, rules::SKIP_VALUE);
    } else if key.needs_value && !has_equals {
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

/// Checks that the item is a function with a body, not `const` and not naked, or an `impl`, `trait` or
/// `mod`, and annotated once.
/// Returns `false` for a statement or an expression.
fn check_item(trees: Vec<TokenTree>, keys: &[(&'static str, Span)], errors: &mut Errors) -> bool {
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
        Item::Container(at) => {
            let keyword = words.get(at).map_or("", String::as_str);
            check_container(&trees, keyword, span(at), keys, errors);
            return true;
        }
        Item::Other(at) => {
            let message = rules::not_annotated(words.get(at).map(String::as_str));
            errors.at(span(at), &message);
            return true;
        }
        Item::Unknown => {
            errors.at(Span::call_site(), &rules::not_annotated(None));
            return false;
        }
    };
    // A skipped function need not be one that can be timed.
    if keys.iter().any(|(key, _)| *key == rules::SKIP) {
        return true;
    }
    let name = span(function + 1);
    if !trees.last().is_some_and(is_braces) {
        errors.at(name, rules::NO_BODY);
        return true;
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
    true
}

/// Checks that an `impl`, `trait` or `mod` has a body, no `name`, and one attribute.
fn check_container(
    trees: &[TokenTree],
    keyword: &str,
    at: Span,
    keys: &[(&'static str, Span)],
    errors: &mut Errors,
) {
    if let Some((_, name)) = keys.iter().find(|(key, _)| *key == "name") {
        errors.at(*name, &rules::name_of_container(keyword));
    }
    if !trees.last().is_some_and(is_braces) {
        errors.at(at, rules::NO_CONTENT);
    }
    let is_repeated = trees.iter().zip(trees.iter().skip(1)).any(|(hash, next)| match next {
        TokenTree::Group(attr) if attr.delimiter() == Delimiter::Bracket => {
            is_punct(Some(hash), '#') && is_ours(attr.stream())
        }
        _ => false,
    });
    if is_repeated {
        errors.at(at, &rules::repeated_on(keyword));
    }
}

fn is_braces(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
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

/// Returns the tokens without the invisible delimiters that `macro_rules!` puts around its
/// fragments.
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
