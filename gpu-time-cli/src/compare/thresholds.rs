//! Thresholds: the largest change to ignore, by function.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use gpu_time_report::{Snapshot, pattern};
use serde::Deserialize;
use serde::de::{self, Deserializer};

use crate::input;
use crate::message::Failure;

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

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The largest change to ignore, by function name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    #[serde(rename = "threshold")]
    pub default: Share,
    /// The thresholds by name pattern.
    functions: BTreeMap<String, Share>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { default: Share(0.05), functions: BTreeMap::new() }
    }
}

impl Thresholds {
    /// Reads the thresholds from a TOML file.
    pub fn read(path: &Path) -> Result<Thresholds, Failure> {
        let bytes = input::bytes(path)?;
        let text = str::from_utf8(&bytes)
            .map_err(|error| format!("{} is not valid UTF-8: {error}", input::name(path)))?;
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count());
            format!("{}, line {}: {}", input::name(path), line + 1, error.message())
        })
    }

    /// Returns the threshold of a function: that of the longest matching pattern, or the default.
    pub fn of(&self, name: &str) -> Share {
        let matching = self.functions.iter().filter(|(text, _)| pattern::matches(text, name));
        matching.max_by_key(|(text, _)| text.len()).map_or(self.default, |(_, share)| *share)
    }

    /// Returns the patterns that match no function of the two reports, in backquotes.
    pub fn unused(&self, base: &Snapshot, new: &Snapshot) -> Vec<String> {
        let is_used = |text: &str| {
            let mut sites = base.sites.iter().chain(&new.sites);
            sites.any(|site| pattern::matches(text, &site.name))
        };
        let unused = self.functions.keys().filter(|text| !is_used(text));
        unused.map(|text| format!("`{text}`")).collect()
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
        let thresholds: Thresholds =
            toml::from_str("[functions]\n\"*\" = \"9%\"\n\"app::*\" = \"1%\"\n\"app::f\" = \"2%\"")
                .unwrap();
        assert_eq!(thresholds.default, Share(0.05));
        for (name, share) in [("app::f", 0.02), ("app::g", 0.01), ("f", 0.09)] {
            assert_eq!(thresholds.of(name), Share(share), "{name}");
        }
        assert!(toml::from_str::<Thresholds>("threshhold = \"5%\"").is_err());
        assert!(toml::from_str::<Thresholds>("threshold = 5").is_err());
    }
}
