//! Selects the timed functions by name.

use crate::config::problems::entries;
use gpu_time_report::pattern::matches;

/// Patterns for the names to time, and for the names to exclude.
///
/// A pattern matches the whole name. `*` matches any text, including `::`. The filter admits a name
/// if an including pattern matches it, or there are no including patterns, and if no excluding
/// pattern matches it. The order of the patterns does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    included: Vec<String>,
    excluded: Vec<String>,
}

/// Parses a comma-separated list of patterns. Passes each invalid one to `invalid`, with the
/// reason.
pub(crate) fn filter(list: &str, invalid: &mut dyn FnMut(&str, String)) -> Filter {
    let mut filter = Filter::default();
    for entry in entries(list) {
        let (patterns, pattern) = match entry.strip_prefix('!') {
            Some(excluded) => (&mut filter.excluded, excluded.trim_start()),
            None => (&mut filter.included, entry),
        };
        if pattern.is_empty() || pattern.starts_with('!') {
            invalid(
                entry,
                "expected a name with `*` for any text, such as `app::*` or `!app::slow`"
                    .to_owned(),
            );
        } else {
            patterns.push(pattern.to_owned());
        }
    }
    filter
}

impl Filter {
    /// Returns `true` if a function with this name is timed.
    pub fn admits(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.included.is_empty() || any(&self.included)) && !any(&self.excluded)
    }

    /// Suggests patterns that were probably meant, if the filter admits none of `names`. They match names
    /// that have an including pattern as their last part, or anywhere.
    pub fn suggest(&self, names: &[&str]) -> Option<String> {
        let suggestion = |pattern: &String| {
            let wider = [format!("*::{pattern}"), format!("*{pattern}*")];
            let is_useful = |wider: &String| {
                let filter = Filter { included: vec![wider.clone()], ..self.clone() };
                names.iter().any(|name| filter.admits(name))
            };
            wider.into_iter().find(is_useful)
        };
        let patterns: Vec<String> = self.included.iter().filter_map(suggestion).collect();
        (!patterns.is_empty()).then(|| patterns.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(list: &str) -> Filter {
        filter(list, &mut |entry, _| panic!("`{entry}` is invalid"))
    }

    #[test]
    fn exclusion_wins() {
        let admits = |list: &str, name: &str| valid(list).admits(name);
        assert!(admits("", "a::b"));
        assert!(admits("a::b", "a::b") && !admits("a::b", "a::bc") && !admits("a::b", "xa::b"));
        assert!(admits("x,a::*", "a::b::c") && !admits("x,a::*", "b::a::c"));
        assert!(!admits("!*::slow", "a::slow") && admits("!*::slow", "a::fast"));
        assert!(!admits("!a::b,a::*", "a::b") && !admits("a::*,!a::b", "a::b"));
    }

    #[test]
    fn suggestion_matches_part_of_a_name() {
        let names = ["app::scale", "app::gemm_f32", "app::slow::copy"];
        for (list, suggestion) in [
            ("scale", Some("*::scale")),
            ("scale,copy", Some("*::scale,*::copy")),
            ("gemm", Some("*gemm*")),
            ("slow::*", Some("*::slow::*")),
            ("sclae", None),
            ("scale,!app::*", None),
            ("!*", None),
        ] {
            assert_eq!(valid(list).suggest(&names).as_deref(), suggestion, "{list}");
        }
    }

    #[test]
    fn pattern_without_text_is_invalid() {
        for pattern in ["!", "!!a", "! "] {
            let mut invalid = Vec::new();
            let filter = filter(pattern, &mut |entry, _| invalid.push(entry.to_owned()));
            assert_eq!((invalid.len(), filter), (1, Filter::default()), "{pattern:?}");
        }
    }
}
