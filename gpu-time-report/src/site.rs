//! An annotated function of the report.

use serde::{Deserialize, Serialize};

use crate::{ScopeKind, Series};

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
    #[doc(hidden)]
    pub calls: u64,
    #[doc(hidden)]
    pub warmup: u64,
    #[doc(hidden)]
    pub skipped: u64,
    #[doc(hidden)]
    pub timed: u64,
    /// Options that could not be followed, each in a sentence.
    #[doc(hidden)]
    pub warnings: Vec<String>,
    #[doc(hidden)]
    pub series: Vec<Series>,
}

impl Site {
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

    /// How often it was called: always `warmup + skipped + timed`.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls that served to warm up.
    pub fn warmup(&self) -> u64 {
        self.warmup
    }

    /// Calls that were switched off, filtered out, or could not be timed.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Calls that were timed, or lost in the attempt.
    pub fn timed(&self) -> u64 {
        self.timed
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
