//! Thresholds: the largest change to ignore, by function.

use std::str::FromStr;

use gpu_time_report::{Snapshot, pattern};

/// A share such as 0.05, written as a percentage: `5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let percent =
            text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
        match percent {
            Some(percent) if (0.0..=1000.0).contains(&percent) => Ok(Share(percent / 100.0)),
            _ => Err("expected a percentage such as `5%`, from 0% to 1000%".to_owned()),
        }
    }
}

/// The largest change to ignore of all functions, or of those whose names match a pattern.
#[derive(Clone)]
pub struct Threshold {
    pattern: String,
    share: Share,
}

impl Threshold {
    /// The largest change to ignore unless an option gives another.
    const DEFAULT: Share = Share(0.05);

    /// Returns the threshold of a function: that of the longest matching pattern, of several the last.
    pub fn of(all: &[Threshold], name: &str) -> Share {
        let matching = all.iter().filter(|one| pattern::matches(&one.pattern, name));
        let longest = matching.max_by_key(|one| one.pattern.len());
        longest.map_or(Threshold::DEFAULT, |one| one.share)
    }

    /// Returns the patterns that match no function of the two reports, in backquotes.
    pub fn unused(all: &[Threshold], base: &Snapshot, new: &Snapshot) -> Vec<String> {
        let is_unused = |one: &&Threshold| {
            let mut sites = base.sites.iter().chain(&new.sites);
            !sites.any(|site| pattern::matches(&one.pattern, &site.name))
        };
        all.iter().filter(is_unused).map(|one| format!("`{}`", one.pattern)).collect()
    }
}

/// Parses `PERCENT`, which is for all functions, or `PATTERN=PERCENT`.
impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let (pattern, share) = text.rsplit_once('=').unwrap_or(("*", text));
        Ok(Threshold { pattern: pattern.trim().to_owned(), share: share.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_parses_percentages() {
        assert_eq!("5%".parse(), Ok(Share(0.05)));
        assert_eq!(" 2.5 % ".parse(), Ok(Share(0.025)));
        for invalid in ["", "5", "%", "-1%", "nan%", "1e9%", "x%"] {
            assert!(invalid.parse::<Share>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn longest_matching_pattern_wins() {
        let all =
            ["*=9%", "app::* = 1%", "app::f=3%", "app::f=2%"].map(|text| text.parse().unwrap());
        for (name, share) in [("app::f", 0.02), ("app::g", 0.01), ("f", 0.09)] {
            assert_eq!(Threshold::of(&all, name), Share(share), "{name}");
        }
        assert_eq!(Threshold::of(&all[1..], "f"), Share(0.05));
        assert!("app::f=much".parse::<Threshold>().is_err());
    }
}
