//! Which fragments get parentheses.

use std::str::FromStr;

use super::*;

/// Reads tokens in which `$ (…)` stands for a fragment.
fn tokens(text: &str) -> TokenStream {
    fragments(TokenStream::from_str(text).unwrap())
}

fn fragments(tokens: TokenStream) -> TokenStream {
    let mut trees: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        let TokenTree::Group(group) = tree else {
            trees.push(tree);
            continue;
        };
        let is_fragment = trees.pop_if(|last| is_punct(last, '$')).is_some();
        let delimiter = if is_fragment { Delimiter::None } else { group.delimiter() };
        trees.push(Group::new(delimiter, fragments(group.stream())).into());
    }
    trees.into_iter().collect()
}

#[track_caller]
fn check(make: fn(TokenStream) -> TokenStream, cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        let without_spaces = |text: &str| text.replace(' ', "");
        let output = make(tokens(input)).to_string();
        assert_eq!(without_spaces(&output), without_spaces(expected), "{input}");
    }
}

#[test]
fn expression_beside_operator_gets_parentheses() {
    check(
        visible,
        &[
            ("$(1 + 2) * 4", "(1 + 2) * 4"),
            ("a / $(1 + 2)", "a / (1 + 2)"),
            ("!$(a && b) == c", "!(a && b) == c"),
            ("a == $(b == c)", "a == (b == c)"),
            ("$(a as u8) < b", "(a as u8) < b"),
            ("$(|a| a)(b)", "(|a| a)(b)"),
            ("$(a.b)(c)", "(a.b)(c)"),
            ("$(0..n).len()", "(0..n).len()"),
            ("if $(S { a }).a {}", "if (S { a }).a {}"),
            ("if $(&S { a }.a) == b {}", "if (&S { a }.a) == b {}"),
            ("$(m! { a }) - 1", "(m! { a }) - 1"),
            ("$($(1 + 2) * 3).pow(2)", "((1 + 2) * 3).pow(2)"),
            ("$(-3).pow(2)", "(-3).pow(2)"),
            ("$(&a)[0]", "(&a)[0]"),
        ],
    );
}

#[test]
fn expression_on_its_own_stays_without_parentheses() {
    check(
        visible,
        &[
            ("let a = $(1 + 2);", "let a = 1 + 2;"),
            ("f, $(1 + 2), $(a = b)", "f, 1 + 2, a = b"),
            ("x => $(1 + 2),", "x => 1 + 2,"),
            ("$(a.f())? + $(b[0]) * $((1, 2)).0", "a.f()? + b[0] * (1, 2).0"),
            ("$(a.b) + $(3).pow(2)", "a.b + 3.pow(2)"),
            ("f::<$(-3)>() + -$(-3) as u8", "f::<-3>() + - -3 as u8"),
            ("$(if a { 1 } else { 2 }) $(match b {}) c", "if a { 1 } else { 2 } match b {} c"),
        ],
    );
}

#[test]
fn expression_that_starts_with_block_gets_parentheses() {
    check(
        visible,
        &[
            ("$({ a } + 1)", "({ a } + 1)"),
            ("a; $(unsafe { a } as u8)", "a; (unsafe { a } as u8)"),
            ("$('a: loop {} == b);", "('a: loop {} == b);"),
        ],
    );
}

#[test]
fn type_whose_plus_or_generics_are_ambiguous_gets_parentheses() {
    check(
        visible,
        &[
            ("-> &'static $(dyn A + B)", "-> &'static (dyn A + B)"),
            ("-> &$(dyn A)", "-> &dyn A"),
            ("a as $(u8) < b", "a as (u8) < b"),
            ("a as $(u8) > b", "a as u8 > b"),
            ("<$(Vec<u8>)>::new()", "<Vec<u8>>::new()"),
        ],
    );
}

#[test]
fn pattern_that_could_be_split_gets_parentheses() {
    check(
        visible,
        &[
            ("a @ $(1 | 2) => {}", "a @ (1 | 2) => {}"),
            ("a @ $(B(ref c) | D { c, .. }) => {}", "a @ (B(ref c) | D { c, .. }) => {}"),
            ("let &$(mut a) = b", "let &(mut a) = b"),
            ("let $(mut a) = b", "let mut a = b"),
            ("$(-3)..=$(5) => {}", "-3..=5 => {}"),
            ("first, $(..)", "first, .."),
        ],
    );
}

#[test]
fn statement_before_another_gets_semicolon() {
    check(
        visible,
        &[
            ("$(let a = 1) $(a += 1) $(m!(a)) b", "let a = 1; a += 1; m!(a); b"),
            ("$(let a = 1); $(a += 1); b", "let a = 1; a += 1; b"),
            ("$(Some(a)) if b => {}", "Some(a) if b => {}"),
        ],
    );
}

#[test]
fn fragment_that_is_no_expression_stays_as_it_is() {
    check(
        visible,
        &[
            ("$() fn f() $({ 1 })", "fn f() { 1 }"),
            ("$(pub(crate)) fn f() {}", "pub(crate) fn f() {}"),
            ("$(#[a] fn f() {}) $(struct S;)", "#[a] fn f() {} struct S;"),
            ("$(m! {}) $(m! {})", "m! {} m! {}"),
            ("$(warmup = 3), $(cold)", "warmup = 3, cold"),
        ],
    );
}

#[test]
fn other_groups_are_visited_only_where_asked() {
    let nested = "$(1 + 2) * { $(1 + 2) * 3 }";
    let inner = |tokens: TokenStream| tokens.into_iter().last().unwrap().to_string();
    assert_eq!(inner(visible(tokens(nested))), inner(tokens(nested)));
    check(
        visible_inside,
        &[
            (nested, "(1 + 2) * { (1 + 2) * 3 }"),
            ("if !($(a + 1) == b) {}", "if !((a + 1) == b) {}"),
        ],
    );
    let input = tokens("a::m!($(1 + 2) * 3); macro_rules! n { ($(1 + 2) * 3) => {} }");
    assert!(contains(&visible_inside(input), &is_fragment), "macros match their input");
}
