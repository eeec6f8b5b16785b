//! Keeps the fragments of `macro_rules!` together.
//!
//! A fragment such as `$e:expr` comes in a group with invisible delimiters. The compiler ignores these
//! delimiters once a macro has taken apart the tokens around them: `$e * 4` would become `1 + 2 * 4`. So a fragment
//! gets parentheses where its neighbours could split it, a statement gets its semicolon, and every other fragment
//! loses its delimiters here.

#[cfg(test)]
mod tests;

use proc_macro2::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::{Expr, Ident, MacroDelimiter, Pat, Type};

use crate::enabled::awaits::contains;

/// Makes the fragments at this level visible. Other groups stay as they are, because nothing takes
/// them apart.
pub fn visible(tokens: TokenStream) -> TokenStream {
    let is_plain = !tokens.clone().into_iter().any(|tree| is_fragment(&tree));
    if is_plain { tokens } else { at_level(tokens, false) }
}

/// Makes the fragments at all levels visible, except in the input of macros, which may match it
/// token by token.
pub fn visible_inside(tokens: TokenStream) -> TokenStream {
    if contains(&tokens, &is_fragment) { at_level(tokens, true) } else { tokens }
}

fn is_fragment(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::None)
}

fn at_level(tokens: TokenStream, is_deep: bool) -> TokenStream {
    let mut trees = tokens.into_iter().peekable();
    let mut output = Vec::new();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                let fragment = at_level(group.stream(), is_deep);
                let next = trees.peek();
                if needs_semicolon(&fragment, &output, next) {
                    output.extend(fragment);
                    output.push(Punct::new(';', Spacing::Alone).into());
                } else if needs_parentheses(&fragment, &output, next) {
                    output.push(delimited(Delimiter::Parenthesis, fragment, &group));
                } else {
                    output.extend(fragment);
                }
            }
            TokenTree::Group(group) if is_deep && !is_macro_input(&output) => {
                let inner = visible_inside(group.stream());
                output.push(delimited(group.delimiter(), inner, &group));
            }
            tree => output.push(tree),
        }
    }
    output.into_iter().collect()
}

fn delimited(delimiter: Delimiter, inner: TokenStream, at: &Group) -> TokenTree {
    let mut group = Group::new(delimiter, inner);
    group.set_span(at.span());
    group.into()
}

/// Returns `true` between the name of a macro and its input: after `name!` or `macro_rules! name`.
fn is_macro_input(before: &[TokenTree]) -> bool {
    // A keyword is not a name, as in `if !(…)`.
    let is_name = |tree: &TokenTree| match tree {
        TokenTree::Ident(word) => syn::parse_str::<Ident>(&word.to_string()).is_ok(),
        _ => false,
    };
    let is_call = |before: &[TokenTree]| match before {
        [.., name, bang] => is_name(name) && is_punct(bang, '!'),
        _ => false,
    };
    match before {
        [before @ .., TokenTree::Ident(_)] => is_call(before),
        before => is_call(before),
    }
}

/// Returns `true` for a statement that only its delimiters separate from the next one.
fn needs_semicolon(
    fragment: &TokenStream,
    before: &[TokenTree],
    after: Option<&TokenTree>,
) -> bool {
    /// Words that continue an expression, a type or a pattern.
    const CONTINUING: [&str; 4] = ["as", "else", "if", "in"];
    let is_first = match before.last() {
        None => true,
        Some(last) => is_punct(last, ';') || is_group(Some(last), Delimiter::Brace),
    };
    let is_apart = match after {
        Some(TokenTree::Ident(word)) => CONTINUING.iter().all(|continuing| word != continuing),
        Some(after) => is_fragment(after) || is_punct(after, '#'),
        None => false,
    };
    let is_statement = |expr| match expr {
        Expr::Let(_) => !after.is_some_and(|after| is_punct(after, ';')),
        expr => is_first && is_apart && !is_block(&expr) && !is_braced_macro(&expr),
    };
    syn::parse2(fragment.clone()).is_ok_and(is_statement)
}

/// Returns `true` if the fragment would mean something else between these tokens.
fn needs_parentheses(
    fragment: &TokenStream,
    before: &[TokenTree],
    after: Option<&TokenTree>,
) -> bool {
    let last = before.last();
    // `<` would open the generics of the type.
    let is_cast = matches!(last, Some(TokenTree::Ident(word)) if word == "as")
        && after.is_some_and(|after| is_punct(after, '<'));
    let is_alone = begins(before) && ends(after);
    is_cast
        || match syn::parse2::<Expr>(fragment.clone()) {
            Ok(expr) if is_block(&expr) => false,
            Ok(expr) => {
                starts_with_block(fragment)
                    || starts_with_struct(&expr) && !is_alone
                    || can_be_split(&expr, is_alone, after)
            }
            Err(_) => {
                !is_alone && (has_several_bounds(fragment) || is_split_pattern(fragment, last))
            }
        }
}

/// Returns `true` if an expression, type or pattern of any kind may begin after these tokens.
fn begins(before: &[TokenTree]) -> bool {
    match before {
        [] => true,
        [.., TokenTree::Group(group)] => group.delimiter() == Delimiter::Brace,
        [before @ .., TokenTree::Punct(last)] => {
            let is_joint = matches!(before, [.., TokenTree::Punct(punct)] if punct.spacing() == Spacing::Joint);
            match last.as_char() {
                ',' | ';' => true,
                // Not `==` or `<=`.
                '=' => !is_joint,
                // `=>`
                '>' => matches!(before, [.., arrow] if is_joint && is_punct(arrow, '=')),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns `true` if an expression, type or pattern of any kind ends before this token.
fn ends(after: Option<&TokenTree>) -> bool {
    after.is_none_or(|after| is_punct(after, ',') || is_punct(after, ';'))
}

/// Returns `true` if the neighbours of an expression could take a part of it.
fn can_be_split(expr: &Expr, is_alone: bool, after: Option<&TokenTree>) -> bool {
    match expr {
        Expr::Array(_)
        | Expr::Async(_)
        | Expr::Await(_)
        | Expr::Call(_)
        | Expr::Index(_)
        | Expr::Infer(_)
        | Expr::Let(_)
        | Expr::Lit(_)
        | Expr::MethodCall(_)
        | Expr::Paren(_)
        | Expr::Path(_)
        | Expr::Repeat(_)
        | Expr::Try(_)
        | Expr::Tuple(_) => false,
        // In a pattern, `(..)` is a tuple.
        Expr::Range(range) if range.start.is_none() && range.end.is_none() => false,
        // `(a.b)(c)` is not a call of a method.
        Expr::Field(_) => is_group(after, Delimiter::Parenthesis),
        // A statement or an item would end before an operator.
        Expr::Macro(_) => is_braced_macro(expr) && !is_alone && is_operator(after),
        // Only a postfix operator binds tighter. A negative number in parentheses would be neither a
        // generic argument nor the end of a range in a pattern.
        Expr::RawAddr(_) | Expr::Reference(_) | Expr::Unary(_) => is_postfix(after),
        _ => !is_alone,
    }
}

/// Returns `true` for an expression after which a statement ends without a semicolon, in a fragment
/// as well.
fn is_block(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Block(_)
            | Expr::Const(_)
            | Expr::ForLoop(_)
            | Expr::If(_)
            | Expr::Loop(_)
            | Expr::Match(_)
            | Expr::TryBlock(_)
            | Expr::Unsafe(_)
            | Expr::While(_)
    )
}

/// Returns `true` for `name! { … }`.
fn is_braced_macro(expr: &Expr) -> bool {
    matches!(expr, Expr::Macro(call) if matches!(call.mac.delimiter, MacroDelimiter::Brace(_)))
}

/// Returns `true` if the first token begins a block, after which a statement would end.
fn starts_with_block(fragment: &TokenStream) -> bool {
    const KEYWORDS: [&str; 8] = ["const", "for", "if", "loop", "match", "try", "unsafe", "while"];
    match fragment.clone().into_iter().next() {
        Some(TokenTree::Ident(word)) => KEYWORDS.iter().any(|keyword| word == keyword),
        // A label.
        Some(TokenTree::Punct(quote)) => quote.as_char() == '\'',
        first => is_group(first.as_ref(), Delimiter::Brace),
    }
}

/// Returns `true` for a literal such as `S { … }`, or a field of it, whose braces would end a condition.
fn starts_with_struct(expr: &Expr) -> bool {
    match expr {
        Expr::Struct(_) => true,
        Expr::Await(expr) => starts_with_struct(&expr.base),
        Expr::Call(expr) => starts_with_struct(&expr.func),
        Expr::Field(expr) => starts_with_struct(&expr.base),
        Expr::Index(expr) => starts_with_struct(&expr.expr),
        Expr::MethodCall(expr) => starts_with_struct(&expr.receiver),
        Expr::Reference(expr) => starts_with_struct(&expr.expr),
        Expr::Try(expr) => starts_with_struct(&expr.expr),
        Expr::Unary(expr) => starts_with_struct(&expr.expr),
        _ => false,
    }
}

/// Returns `true` for a type such as `dyn A + B`, whose `+` is ambiguous after `&`.
fn has_several_bounds(fragment: &TokenStream) -> bool {
    match syn::parse2(fragment.clone()) {
        Ok(Type::ImplTrait(ty)) => ty.bounds.len() > 1,
        Ok(Type::TraitObject(ty)) => ty.bounds.len() > 1,
        _ => false,
    }
}

/// Returns `true` for `A(_) | B(_)`, and for `mut x` after `&`.
fn is_split_pattern(fragment: &TokenStream, before: Option<&TokenTree>) -> bool {
    match Pat::parse_multi.parse2(fragment.clone()) {
        Ok(Pat::Or(_)) => true,
        Ok(Pat::Ident(name)) => {
            name.mutability.is_some() && before.is_some_and(|before| is_punct(before, '&'))
        }
        _ => false,
    }
}

/// Returns `true` for `.`, `?`, the arguments of a call and an index, but not for `..`.
fn is_postfix(after: Option<&TokenTree>) -> bool {
    match after {
        Some(TokenTree::Punct(punct)) => {
            punct.as_char() == '?' || punct.as_char() == '.' && punct.spacing() == Spacing::Alone
        }
        after => is_group(after, Delimiter::Parenthesis) || is_group(after, Delimiter::Bracket),
    }
}

fn is_operator(tree: Option<&TokenTree>) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() != '#')
}

fn is_group(tree: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(tree, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

fn is_punct(tree: &TokenTree, c: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == c)
}
