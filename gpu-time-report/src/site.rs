//! An annotated function of the report.

use serde::{Deserialize, Serialize};

use crate::{Remark, ScopeKind, Series, remark};

/// An annotated function, what became of its calls, and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub file: String,
    #[doc(hidden)]
    pub line: u32,
    #[doc(hidden)]
    pub scope: ScopeKind,
    #[doc(hidden)]
    pub launches_seen: u32,
    #[doc(hidden)]
    pub options: String,
    /// How the attribute times the function, beside what its arguments say. Missing in the first reports.
    #[doc(hidden)]
    #[serde(default, deserialize_with = "remark::known")]
    pub remarks: Vec<Remark>,
    #[doc(hidden)]
    pub calls: u64,
    #[doc(hidden)]
    pub warmup: u64,
    #[doc(hidden)]
    pub skipped: u64,
    #[doc(hidden)]
    #[serde(default)]
    pub unsampled: u64,
    #[doc(hidden)]
    pub timed: u64,
    #[doc(hidden)]
    #[serde(default)]
    pub holds_released: u64,
    #[doc(hidden)]
    #[serde(default)]
    pub holds_expired: u64,
    #[doc(hidden)]
    #[serde(default = "all")]
    pub sample_rate: f64,
    /// Options that could not be followed, each in a sentence.
    #[doc(hidden)]
    pub warnings: Vec<String>,
    #[doc(hidden)]
    pub series: Vec<Series>,
}

impl Site {
    /// A function that was not called, with the attribute's defaults.
    #[doc(hidden)]
    pub fn new(name: String, file: String, line: u32, scope: ScopeKind) -> Site {
        Site {
            name,
            file,
            line,
            scope,
            launches_seen: 0,
            options: String::new(),
            remarks: Vec::new(),
            calls: 0,
            warmup: 0,
            skipped: 0,
            unsampled: 0,
            timed: 0,
            holds_released: 0,
            holds_expired: 0,
            sample_rate: 1.0,
            warnings: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Its label: the function's path, or what the attribute's `name` says.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The source file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of the function's name.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// What is bracketed: `launches`, each of them, or `body`, the whole.
    pub fn scope(&self) -> &str {
        self.scope.name()
    }

    /// How many launches the attribute saw in the body.
    pub fn launches_seen(&self) -> u32 {
        self.launches_seen
    }

    /// The attribute's arguments.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Returns `true` if the attribute has an argument with this key.
    pub(crate) fn has_option(&self, key: &str) -> bool {
        let is_key = |argument: &str| {
            let (name, _) = argument.split_once('=').unwrap_or((argument, ""));
            name.trim() == key
        };
        arguments(&self.options).any(is_key)
    }

    /// How often it was called: always `warmup + skipped + timed`.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls that served to warm up.
    pub fn warmup(&self) -> u64 {
        self.warmup
    }

    /// Calls that were switched off, filtered out, not sampled, or could not be timed.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Of the skipped ones, those that were not sampled.
    pub fn unsampled(&self) -> u64 {
        self.unsampled
    }

    /// The share of the calls that is timed now, 1 where all are.
    pub fn sample_rate(&self) -> f64 {
        self.sample_rate
    }

    /// Whether not every call was timed that could have been.
    pub(crate) fn is_sampled(&self) -> bool {
        self.unsampled > 0
    }

    /// Calls that were timed, or lost in the attempt.
    pub fn timed(&self) -> u64 {
        self.timed
    }

    /// Of the holds of measured brackets, those that the host released once the bracket was enqueued.
    pub fn holds_released(&self) -> u64 {
        self.holds_released
    }

    /// Of the holds of measured brackets, those that ended before that, by their deadline.
    pub fn holds_expired(&self) -> u64 {
        self.holds_expired
    }

    /// Options that could not be followed, each in a sentence.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What was measured, by launch, device and cache state. Empty if nothing was.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The identities that do not hold, each in a sentence.
    pub(crate) fn inconsistencies(&self) -> Vec<String> {
        let Site { name, calls, warmup, skipped, timed, .. } = self;
        let own = (*calls != warmup.saturating_add(*skipped).saturating_add(*timed)).then(|| {
            format!(
                "`{name}`: {calls} calls are not {warmup} of warm-up + {skipped} skipped + {timed} timed"
            )
        });
        let series = self.series.iter().flat_map(Series::inconsistencies);
        own.into_iter().chain(series.map(|broken| format!("`{name}` on {broken}"))).collect()
    }
}

/// Splits the attribute's arguments at the commas between them. Commas in brackets and in string literals
/// separate no arguments.
fn arguments(options: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    options.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => return c == ',' && depth == 0,
        }
        false
    })
}

/// The rate of a report that was written before there was one.
fn all() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_between_brackets_and_strings() {
        let options = r#"name = "a\", b", stream = f(x, [y, z]), cold"#;
        assert_eq!(
            arguments(options).collect::<Vec<_>>(),
            [r#"name = "a\", b""#, " stream = f(x, [y, z])", " cold"]
        );
    }
}
