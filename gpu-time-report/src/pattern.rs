//! Name patterns with wildcards.

/// Returns `true` if the pattern matches the whole name. `*` matches any text, including `::`.
///
/// The text between two stars is matched at its first occurrence, which leaves the most text for
/// the rest of the pattern. Only the text after the last star is anchored at the end.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(name) = name.strip_prefix(head) else { return false };
    let Some(mut name) = name.strip_suffix(tail) else { return false };
    for part in middle.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_match_any_text() {
        for (pattern, name) in [
            ("*", ""),
            ("**", "x"),
            ("a*", "a"),
            ("*a", "a"),
            ("a*a", "aa"),
            ("*b*c*", "abcd"),
            ("*ab", "aab"),
            ("a*bc*bc", "abcbc"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a*a", "a"), ("*ab*ab*", "ab"), ("a*bc*bc", "abc")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    /// Matches by definition: a star stands for nothing, or for one character followed by a star.
    fn by_definition(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                by_definition(rest, name)
                    || matches!(name, [_, tail @ ..] if by_definition(pattern, tail))
            }
            ([p, rest @ ..], [n, tail @ ..]) => p == n && by_definition(rest, tail),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_agrees_with_the_definition(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), by_definition(&chars(&pattern), &chars(&name)));
        }
    }
}
