//! One of the runs in a merged series.

use serde::{Deserialize, Serialize};

/// The figures of a series in one of the runs that were merged.
///
/// Runs of the same program differ by more than the samples within one run suggest, so comparisons
/// of programs are based on runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The index of the run's process in [`Process::merged`](crate::Process::merged), from 0.
    pub process: u32,
    /// The number of fed samples.
    pub fed: u64,
    /// The number of starved samples.
    pub starved: u64,
    /// The raw median of the fed samples, or of the starved ones if none was fed.
    pub raw_median_ns: f64,
    /// The net median of the same samples, or `None` if it is unknown.
    pub net_median_ns: Option<f64>,
    /// The raw mean of the same samples.
    pub raw_mean_ns: f64,
    /// The 95 % confidence interval of the raw median, or `None` with too few samples.
    pub ci95_ns: Option<[f64; 2]>,
}
