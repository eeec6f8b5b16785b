//! Detection of misspelled names.

use crate::config::problems::shown;

/// The prefix of the library's variables. `GPU_TIME` has no more.
const PREFIX: &str = "GPU_TIME";
/// The prefix reserved for test variables.
const TEST_PREFIX: &str = "GPU_TIME_TEST_";
/// A name counts as misspelled if it differs from a known one by at most this many letters.
const MAX_TYPOS: usize = 2;

/// Returns `true` for names that only the library's variables have, known or not.
pub(crate) fn are_ours(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        && !name.starts_with(TEST_PREFIX)
}

/// Returns the message about an unknown variable.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of `{}`", known.join("`, `")),
    };
    format!("unknown variable `{}`: {hint}", shown(name))
}

/// Returns the known name that `name` most likely misspells.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_uppercase();
    let similar = known.iter().filter(|known| known.len().abs_diff(name.len()) <= MAX_TYPOS);
    let near = similar.map(|known| (edit_distance(&name, &known.to_uppercase()), *known));
    near.filter(|(typos, _)| *typos <= MAX_TYPOS).min().map(|(_, known)| known)
}

/// Returns the Levenshtein distance in bytes: the number of insertions, removals and changes.
fn edit_distance(one: &str, other: &str) -> usize {
    // Distances from the part of `one` read so far to each prefix of `other`.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (read, letter) in one.bytes().enumerate() {
        let (mut next, mut last) = (vec![read + 1], read + 1);
        for (wanted, above) in other.bytes().zip(row.windows(2)) {
            let &[diagonal, above] = above else { continue };
            last = (diagonal + usize::from(letter != wanted)).min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Options;

    fn messages(name: &str, value: &str) -> Vec<String> {
        Options::from_vars([(name.into(), value.into())]).1
    }

    #[test]
    fn misspelt_variable_suggests_known_one() {
        for (name, near) in [
            ("GPU_TIME_REPROT", "GPU_TIME_REPORT"),
            ("GPU_TIME_TRACELAST", "GPU_TIME_TRACE_LAST"),
            ("GPU_TIME_Cold", "GPU_TIME_COLD"),
            ("GPU_TIME_", "GPU_TIME"),
        ] {
            let expected = format!("unknown variable `{name}`: did you mean `{near}`?");
            assert_eq!(messages(name, "x"), [expected]);
        }
    }

    #[test]
    fn unknown_variable_lists_known_ones() {
        for name in ["GPU_TIME_OUTPUT", "GPU_TIME_\u{e9}t\u{e9}\n"] {
            let expected =
                format!("unknown variable `{}`: expected one of `GPU_TIME`, ", name.escape_debug());
            let [line] = &messages(name, "x")[..] else { panic!("{name}") };
            assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
            assert!(line.ends_with(", `GPU_TIME_CUPTI`"), "{line}");
        }
    }

    #[test]
    fn foreign_and_test_variables_are_ignored() {
        for name in ["GPU_TIMER", "MY_GPU_TIME_X", "GPU_TIME_TEST_DRIVER", "gpu_time_x"] {
            assert_eq!(messages(name, "x"), [""; 0]);
        }
        for blank in ["", " "] {
            assert_eq!(messages("GPU_TIME_REPROT", blank), [""; 0]);
        }
    }

    #[test]
    fn path_of_cupti_is_known() {
        let messages = messages("GPU_TIME_CUPTI", "/nope");
        assert!(messages.iter().all(|line| !line.starts_with("unknown")), "{messages:?}");
    }

    #[test]
    fn edit_distance_counts_letters() {
        for (one, other, count) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abcd", "acbd", 2), ("abc", "xabc", 1)]
        {
            assert_eq!(edit_distance(one, other), count, "{one} {other}");
        }
    }
}
