//! Annotated functions in the report.

use serde::{Deserialize, Serialize};

use crate::{Remark, ScopeKind, Series, remark};

/// An annotated function, with its call counts and measurements.
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
    /// The keys `cold`, `sleep` and `graph`, if the attribute has them. Missing in the first reports.
    #[doc(hidden)]
    #[serde(default)]
    pub gpu_keys: Vec<String>,
    /// The attribute's remarks about how it times the function. Missing in the first reports.
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
    #[doc(hidden)]
    pub warnings: Vec<String>,
    #[doc(hidden)]
    pub series: Vec<Series>,
    /// `true` if any path to the function is launch-bound in the call tree. `None` without opened
    /// calls.
    #[doc(hidden)]
    #[serde(skip)]
    pub launch_bound: Option<bool>,
}

impl Site {
    /// Creates a function that was never called, with the default options.
    #[doc(hidden)]
    pub fn new(name: String, file: String, line: u32, scope: ScopeKind) -> Site {
        Site {
            name,
            file,
            line,
            scope,
            launches_seen: 0,
            options: String::new(),
            gpu_keys: Vec::new(),
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
            launch_bound: None,
        }
    }

    /// Returns the label: the attribute's `name`, or the path of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the source file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the line of the function's name.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the scope: `launches` if each launch is bracketed, or `body`.
    pub fn scope(&self) -> &str {
        self.scope.name()
    }

    /// Returns the number of launches found in the body by the macro.
    pub fn launches_seen(&self) -> u32 {
        self.launches_seen
    }

    /// Returns the attribute's arguments.
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Returns `true` if the attribute has this key: `cold`, `sleep` or `graph`.
    pub(crate) fn has_gpu_key(&self, key: &str) -> bool {
        self.gpu_keys.iter().any(|other| other == key)
    }

    /// Returns the number of calls, which is always `warmup + skipped + timed`.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of warm-up calls.
    pub fn warmup(&self) -> u64 {
        self.warmup
    }

    /// Returns the number of calls that were not timed, because timing was off, the filter excluded
    /// the function, sampling skipped them, or they could not be timed.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of calls skipped by sampling.
    pub fn unsampled(&self) -> u64 {
        self.unsampled
    }

    /// Returns the fraction of calls currently timed, which is 1 if all are.
    pub fn sample_rate(&self) -> f64 {
        self.sample_rate
    }

    /// Returns `true` if sampling skipped any call.
    pub(crate) fn is_sampled(&self) -> bool {
        self.unsampled > 0
    }

    /// Returns the number of calls that were timed, or lost while being timed.
    pub fn timed(&self) -> u64 {
        self.timed
    }

    /// Returns the number of measured brackets whose hold was released by the host once the bracket
    /// was enqueued.
    pub fn holds_released(&self) -> u64 {
        self.holds_released
    }

    /// Returns the number of measured brackets whose hold expired before the host released it.
    pub fn holds_expired(&self) -> u64 {
        self.holds_expired
    }

    /// Returns a sentence for each option that could not be applied.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the measurements, by device, key, launch and cache state.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Returns a sentence for each identity that does not hold.
    pub(crate) fn inconsistencies(&self) -> Vec<String> {
        let Site { name, calls, warmup, skipped, timed, .. } = self;
        let own = (*calls != warmup.saturating_add(*skipped).saturating_add(*timed)).then(|| {
            format!(
                "`{name}`: {calls} calls, but {warmup} warm-up + {skipped} skipped + {timed} timed"
            )
        });
        let series = self.series.iter().flat_map(Series::inconsistencies);
        own.into_iter().chain(series.map(|broken| format!("`{name}` on {broken}"))).collect()
    }
}

/// Returns the sampling rate of reports written before sampling was supported: all calls.
fn all() -> f64 {
    1.0
}
