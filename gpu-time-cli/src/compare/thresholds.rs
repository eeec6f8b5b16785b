//! How much of a change matters.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use gpu_time_report::{Snapshot, pattern};
use serde::Deserialize;
use serde::de::{self, Deserializer};

use crate::{Failure, input};

/// A share, written in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let percent =
            text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
        match percent {
            Some(percent) if (0.0..=1000.0).contains(&percent) => Ok(Share(percent / 100.0)),
            _ => Err(format!("`{text}` is no share such as `5%`, from 0% to 1000%")),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// How much of a change matters, by the function's name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    #[serde(rename = "threshold", default = "five_percent")]
    pub default: Share,
    /// By pattern.
    #[serde(default)]
    functions: BTreeMap<String, Share>,
}

fn five_percent() -> Share {
    Share(0.05)
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { default: five_percent(), functions: BTreeMap::new() }
    }
}

impl Thresholds {
    /// Those of a TOML file.
    pub fn read(path: &Path) -> Result<Thresholds, Failure> {
        let bytes = input::bytes(path)?;
        let text = str::from_utf8(&bytes)
            .map_err(|error| format!("`{}` is no text: {error}", path.display()))?;
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count());
            format!("`{}`, line {}: {}", path.display(), line + 1, error.message())
        })
    }

    /// That of a function: the longest pattern that fits its name has it.
    pub fn of(&self, name: &str) -> Share {
        let fitting = self.functions.iter().filter(|(known, _)| pattern::matches(known, name));
        fitting.max_by_key(|(known, _)| known.len()).map_or(self.default, |(_, share)| *share)
    }

    /// The patterns that fit no function of the two reports, in quotes.
    pub fn unused(&self, base: &Snapshot, new: &Snapshot) -> Vec<String> {
        let fits = |known: &str| {
            let mut sites = base.sites().iter().chain(new.sites());
            sites.any(|site| pattern::matches(known, site.name()))
        };
        let unused = self.functions.keys().filter(|known| !fits(known));
        unused.map(|known| format!("`{known}`")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_percent() {
        assert_eq!("5%".parse(), Ok(Share(0.05)));
        assert_eq!(" 2.5 % ".parse(), Ok(Share(0.025)));
        for wrong in ["", "5", "%", "-1%", "nan%", "1e9%", "x%"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_longest_pattern_counts() {
        let limits: Thresholds =
            toml::from_str("[functions]\n\"*\" = \"9%\"\n\"app::*\" = \"1%\"\n\"app::f\" = \"2%\"")
                .unwrap();
        assert_eq!(limits.default, Share(0.05));
        for (name, share) in [("app::f", 0.02), ("app::g", 0.01), ("f", 0.09)] {
            assert_eq!(limits.of(name), Share(share), "{name}");
        }
        assert!(toml::from_str::<Thresholds>("threshhold = \"5%\"").is_err());
        assert!(toml::from_str::<Thresholds>("threshold = 5").is_err());
    }
}
