//! An annotated function of the report.

use serde::{Serialize, Serializer};

use super::Series;
use crate::site::ScopeKind;

/// An annotated function, what became of its calls, and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Site {
    pub(crate) name: String,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    #[serde(serialize_with = "scope_name")]
    pub(crate) scope: ScopeKind,
    pub(crate) launches_seen: u32,
    pub(crate) options: String,
    pub(crate) calls: u64,
    pub(crate) warmup: u64,
    pub(crate) skipped: u64,
    pub(crate) timed: u64,
    /// Options that could not be followed, each in a sentence.
    pub(crate) warnings: Vec<String>,
    pub(crate) series: Vec<Series>,
}

impl Site {
    /// Its label: the function's path, or what the attribute's `name` says.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The source file.
    pub fn file(&self) -> &str {
        self.file
    }

    /// The line of the function's name.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// What is bracketed: `launches`, each of them, or `body`, the whole.
    pub fn scope(&self) -> &str {
        scope(self.scope)
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
    pub(super) fn inconsistencies(&self) -> Vec<String> {
        let Site { name, calls, warmup, skipped, timed, .. } = self;
        let own = (*calls != warmup + skipped + timed).then(|| {
            format!(
                "`{name}`: {calls} calls are not {warmup} of warm-up + {skipped} skipped + {timed} timed"
            )
        });
        let series = self.series.iter().flat_map(Series::inconsistencies);
        own.into_iter().chain(series.map(|broken| format!("`{name}` on {broken}"))).collect()
    }
}

fn scope(kind: ScopeKind) -> &'static str {
    match kind {
        ScopeKind::Launches => "launches",
        ScopeKind::Body => "body",
    }
}

fn scope_name<S: Serializer>(kind: &ScopeKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scope(*kind))
}
