//! The budget for the cost of timing.

use serde::{Deserialize, Serialize};

/// A process's budget: the fraction of wall time available for timing, and the cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Budget {
    /// The fraction of wall time available for timing on the host and on the device, summed over
    /// all threads.
    pub share: f64,
    /// The fraction of wall time recently spent on timing, averaged over about ten seconds. It
    /// includes the time that CUPTI adds to launches after its first recording.
    pub cost_share: f64,
    /// The host time spent on timing since the budget was set, over all threads.
    pub host_ns: u64,
    /// The device time spent on timing: events, holds, flushes, and the work that kernels have to
    /// repeat because of them.
    pub device_ns: u64,
    /// By which fraction timing made the calls of functions longer: the difference between calls that were timed and
    /// calls that were left alone at random. `None` until there are enough of both.
    #[serde(default)]
    pub added_share: Option<f64>,
    /// The standard error of `added_share`.
    #[serde(default)]
    pub added_error_share: Option<f64>,
}
