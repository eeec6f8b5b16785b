//! Which functions are timed, by name.

/// Patterns of the names to time, and of those not to.
///
/// A pattern matches the whole name, with `*` for any text, also across `::`. A name is admitted if a
/// positive pattern matches it, or there are none, and no excluding one does: excluding wins,
/// whatever the order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    included: Vec<String>,
    excluded: Vec<String>,
}

impl Filter {
    /// Adds a pattern, which a leading `!` makes an excluding one. Answers whether it is one.
    pub fn add(&mut self, pattern: &str) -> bool {
        let (patterns, pattern) = match pattern.strip_prefix('!') {
            Some(excluded) => (&mut self.excluded, excluded.trim_start()),
            None => (&mut self.included, pattern),
        };
        let is_pattern = !pattern.is_empty() && !pattern.starts_with('!');
        if is_pattern {
            patterns.push(pattern.to_owned());
        }
        is_pattern
    }

    /// Whether a function of this name is timed.
    pub fn admits(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.included.is_empty() || any(&self.included)) && !any(&self.excluded)
    }
}

/// Whether the pattern matches the whole name.
///
/// The text between two stars may as well be found at its first place, which leaves the most to what
/// follows; only the text after the last star is bound to the end.
fn matches(pattern: &str, name: &str) -> bool {
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

    fn filter(patterns: &[&str]) -> Filter {
        let mut filter = Filter::default();
        for pattern in patterns {
            assert!(filter.add(pattern), "{pattern}");
        }
        filter
    }

    #[test]
    fn excluding_wins() {
        let admits = |patterns: &[&str], name: &str| filter(patterns).admits(name);
        assert!(admits(&[], "a::b"));
        assert!(
            admits(&["a::b"], "a::b") && !admits(&["a::b"], "a::bc") && !admits(&["a::b"], "xa::b")
        );
        assert!(admits(&["x", "a::*"], "a::b::c") && !admits(&["x", "a::*"], "b::a::c"));
        assert!(!admits(&["!*::slow"], "a::slow") && admits(&["!*::slow"], "a::fast"));
        assert!(!admits(&["!a::b", "a::*"], "a::b") && !admits(&["a::*", "!a::b"], "a::b"));
    }

    #[test]
    fn a_pattern_has_text() {
        for none in ["", "!", "!!a", "! "] {
            assert!(!Filter::default().add(none), "{none:?}");
        }
    }

    #[test]
    fn stars_match_nothing_and_anything() {
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

    /// The definition: a star stands for nothing, or for one character and a star.
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
        fn matching_follows_the_definition(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), by_definition(&chars(&pattern), &chars(&name)));
        }
    }
}
