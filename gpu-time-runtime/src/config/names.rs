//! The variables that there are, and those that nobody knows.

use std::ffi::OsString;

/// Every variable that is read.
pub(super) const NAMES: [&str; 10] = [
    "GPU_TIME",
    "GPU_TIME_REPORT",
    "GPU_TIME_FILTER",
    "GPU_TIME_SAMPLE",
    "GPU_TIME_BUDGET",
    "GPU_TIME_WARMUP",
    "GPU_TIME_COLD",
    "GPU_TIME_SLEEP",
    "GPU_TIME_BIAS",
    "GPU_TIME_TRACE_LAST",
];

/// What begins so is ours.
const OURS: &str = "GPU_TIME_";
/// What begins so is for tests.
const TESTS: &str = "GPU_TIME_TEST_";
/// So many wrong letters may be a slip.
const SLIPS: usize = 2;

/// A complaint about each variable that looks like ours and is none. One that is empty counts as not set.
pub(crate) fn unknown(vars: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let set = vars.filter(|(_, value)| !value.is_empty());
    let names = set.map(|(name, _)| name.to_string_lossy().into_owned());
    let is_unknown = |name: &String| {
        name.starts_with(OURS) && !name.starts_with(TESTS) && !NAMES.contains(&&**name)
    };
    names.filter(is_unknown).map(|name| complaint(&name)).collect()
}

fn complaint(name: &str) -> String {
    let meant = nearest(name).map_or_else(String::new, |near| format!(", perhaps `{near}`"));
    let (name, accepted) = (name.escape_debug(), NAMES.join("`, `"));
    format!("`{name}`: no such variable is known{meant}; accepted are `{accepted}`")
}

/// The name that this may be a slip of.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_uppercase();
    let near = NAMES.into_iter().map(|known| (slips(&name, known), known));
    near.filter(|(slips, _)| *slips <= SLIPS).min().map(|(_, known)| known)
}

/// How many letters must be put in, left out or changed to make one of the other.
fn slips(one: &str, other: &str) -> usize {
    // From what was read of the one to each begin of the other.
    let mut slips: Vec<usize> = (0..=other.len()).collect();
    for (read, letter) in one.bytes().enumerate() {
        let (mut next, mut last) = (vec![read + 1], read + 1);
        for (wanted, without) in other.bytes().zip(slips.windows(2)) {
            let &[both, one] = without else { continue };
            last = (both + usize::from(letter != wanted)).min(one + 1).min(last + 1);
            next.push(last);
        }
        slips = next;
    }
    slips.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::config::Config;

    fn complaints(vars: &[(&str, &str)]) -> Vec<String> {
        unknown(vars.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn the_names_are_those_that_are_read() {
        let read = RefCell::new(Vec::new());
        Config::from_vars(|name| {
            read.borrow_mut().push(name.to_owned());
            None
        });
        let (mut read, mut names) = (read.into_inner(), NAMES);
        read.sort();
        names.sort_unstable();
        assert_eq!(read, names);
    }

    #[test]
    fn what_nobody_reads_is_named_with_what_is_near() {
        for (name, near) in [
            ("GPU_TIME_REPROT", ", perhaps `GPU_TIME_REPORT`; "),
            ("GPU_TIME_TRACELAST", ", perhaps `GPU_TIME_TRACE_LAST`; "),
            ("GPU_TIME_Cold", ", perhaps `GPU_TIME_COLD`; "),
            ("GPU_TIME_", ", perhaps `GPU_TIME`; "),
            ("GPU_TIME_OUTPUT", "; "),
            ("GPU_TIME_\u{e9}t\u{e9}\n", "; "),
        ] {
            let name_shown = name.escape_debug();
            let complaint =
                format!("`{name_shown}`: no such variable is known{near}accepted are `GPU_TIME`, ");
            let [line] = &complaints(&[(name, "x")])[..] else { panic!("{name}") };
            assert!(line.starts_with(&complaint) && !line.contains('\n'), "{line}");
            assert!(line.ends_with(", `GPU_TIME_TRACE_LAST`"), "{line}");
        }
    }

    #[test]
    fn others_variables_and_those_of_tests_are_left_alone() {
        let known = NAMES.map(|name| (name, "x"));
        let others = [("GPU_TIMER", "x"), ("MY_GPU_TIME_X", "x"), ("GPU_TIME_TEST_DRIVER", "real")];
        assert_eq!(complaints(&known), [""; 0]);
        assert_eq!(complaints(&others), [""; 0]);
        assert_eq!(complaints(&[("GPU_TIME_REPROT", "")]), [""; 0]);
    }

    #[test]
    fn slips_are_letters() {
        for (one, other, count) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abcd", "acbd", 2), ("abc", "xabc", 1)]
        {
            assert_eq!(slips(one, other), count, "{one} {other}");
        }
    }
}
