//! Which functions are timed, by name.

use gpu_time_report::pattern::matches;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
