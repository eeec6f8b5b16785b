//! Annotated functions in the report.

use serde::{Deserialize, Serialize};

use crate::{Remark, ScopeKind, Series};

/// An annotated function, with its call counts and measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Site {
    /// The label: the attribute's `name`, or the path of the function.
    pub name: String,
    /// The source file.
    pub file: String,
    /// The line of the function's name.
    pub line: u32,
    /// The scope: `launches` if each launch is bracketed, or `body`.
    pub scope: ScopeKind,
    /// The number of launches found in the body by the macro.
    pub launches_seen: u32,
    /// The attribute's arguments.
    pub options: String,
    /// The keys `cold`, `sleep` and `graph`, if the attribute has them.
    pub gpu_keys: Vec<String>,
    /// The attribute's remarks about how it times the function.
    pub remarks: Vec<Remark>,
    /// The number of calls, which is always `warmup + skipped + timed`.
    pub calls: u64,
    /// The number of warm-up calls.
    pub warmup: u64,
    /// The number of calls that were not timed, because timing was off, the filter excluded the
    /// function, sampling skipped them, or they could not be timed.
    pub skipped: u64,
    /// The number of calls skipped by sampling.
    pub unsampled: u64,
    /// The number of calls that were timed, or lost while being timed.
    pub timed: u64,
    /// The number of measured brackets whose hold was released by the host once the bracket was
    /// enqueued.
    pub holds_released: u64,
    /// The number of measured brackets whose hold expired before the host released it.
    pub holds_expired: u64,
    /// The fraction of calls currently timed, which is 1 if all are.
    pub sample_rate: f64,
    /// A sentence for each option that could not be applied.
    pub warnings: Vec<String>,
    /// The measurements, by device, key, launch and cache state.
    pub series: Vec<Series>,
    /// `true` if any path to the function is launch-bound in the call tree. `None` without opened
    /// calls.
    #[serde(skip)]
    pub(crate) launch_bound: Option<bool>,
}

impl Site {
    /// Creates a function that was never called, with the default options.
    #[doc(hidden)]
    pub fn new(name: String, file: String, line: u32, scope: ScopeKind) -> Site {
        Site { name, file, line, scope, sample_rate: 1.0, ..Site::default() }
    }

    /// Returns `true` if the attribute has this key: `cold`, `sleep` or `graph`.
    pub(crate) fn has_gpu_key(&self, key: &str) -> bool {
        self.gpu_keys.iter().any(|other| other == key)
    }

    /// Returns `true` if sampling skipped any call.
    pub(crate) fn is_sampled(&self) -> bool {
        self.unsampled > 0
    }

    /// Returns the function's own series, without those of its launches.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| series.launch.is_none())
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
