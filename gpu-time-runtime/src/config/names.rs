//! Detection of misspelled variables.

use std::ffi::OsString;

use crate::base::environment::is_blank;

/// All variables that are read.
const NAMES: [&str; 17] = [
    "GPU_TIME",
    "GPU_TIME_REPORT",
    "GPU_TIME_FILTER",
    "GPU_TIME_SAMPLE",
    "GPU_TIME_BUDGET",
    "GPU_TIME_WARMUP",
    "GPU_TIME_COLD",
    "GPU_TIME_SLEEP",
    "GPU_TIME_KERNELS",
    "GPU_TIME_WINDOWS",
    "GPU_TIME_NVTX",
    "GPU_TIME_LABEL",
    "GPU_TIME_NOTES",
    "GPU_TIME_CUPTI",
    "GPU_TIME_BIAS",
    "GPU_TIME_TRACE_LAST",
    "GPU_TIME_VIEW",
];

/// The prefix of the library's variables.
const PREFIX: &str = "GPU_TIME_";
/// The prefix reserved for test variables.
const TEST_PREFIX: &str = "GPU_TIME_TEST_";
/// A name counts as misspelled if it differs from a known one by at most this many letters.
const MAX_TYPOS: usize = 2;

/// Returns a message for each unknown variable with the library's prefix. An empty or blank
/// variable counts as unset.
pub(crate) fn unknown_names(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let set = vars.filter(|(_, value)| !is_blank(value));
    let names = set.map(|(name, _)| name.to_string_lossy().into_owned());
    let is_unknown = |name: &String| {
        name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX) && !NAMES.contains(&&**name)
    };
    names.filter(is_unknown).map(|name| message(&name)).collect()
}

fn message(name: &str) -> String {
    let hint = match nearest(name) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of `{}`", NAMES.join("`, `")),
    };
    format!("unknown variable `{}`: {hint}", name.escape_debug())
}

/// Returns the known name that `name` most likely misspells.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_uppercase();
    let near = NAMES.into_iter().map(|known| (edit_distance(&name, known), known));
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
    use std::cell::RefCell;

    use super::*;
    use crate::config::options::Options;

    fn messages(vars: &[(&str, &str)]) -> Vec<String> {
        unknown_names(vars.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn names_are_the_variables_read() {
        let read = RefCell::new(Vec::new());
        Options::from_vars(|name| {
            read.borrow_mut().push(name.to_owned());
            None
        });
        let (mut read, mut names) = (read.into_inner(), NAMES);
        // The runtime reads this variable when it looks for CUPTI.
        #[cfg(feature = "kernels")]
        read.push("GPU_TIME_CUPTI".to_owned());
        read.sort();
        names.sort_unstable();
        assert_eq!(read, names);
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
            assert_eq!(messages(&[(name, "x")]), [expected]);
        }
    }

    #[test]
    fn unknown_variable_lists_known_ones() {
        for name in ["GPU_TIME_OUTPUT", "GPU_TIME_\u{e9}t\u{e9}\n"] {
            let expected =
                format!("unknown variable `{}`: expected one of `GPU_TIME`, ", name.escape_debug());
            let [line] = &messages(&[(name, "x")])[..] else { panic!("{name}") };
            assert!(line.starts_with(&expected) && !line.contains('\n'), "{line}");
            assert!(line.ends_with(", `GPU_TIME_VIEW`"), "{line}");
        }
    }

    #[test]
    fn foreign_and_test_variables_are_ignored() {
        let known = NAMES.map(|name| (name, "x"));
        let others = [("GPU_TIMER", "x"), ("MY_GPU_TIME_X", "x"), ("GPU_TIME_TEST_DRIVER", "real")];
        assert_eq!(messages(&known), [""; 0]);
        assert_eq!(messages(&others), [""; 0]);
        for blank in ["", " "] {
            assert_eq!(messages(&[("GPU_TIME_REPROT", blank)]), [""; 0]);
        }
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
