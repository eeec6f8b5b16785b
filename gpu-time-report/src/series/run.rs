//! One of the runs in a merged series.

use serde::{Deserialize, Serialize};

/// The figures of a series in one of the runs that were merged.
///
/// Runs of the same program differ by more than the samples within one run suggest, so comparisons
/// of programs are based on runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    #[doc(hidden)]
    pub process: u32,
    #[doc(hidden)]
    pub fed: u64,
    #[doc(hidden)]
    pub starved: u64,
    #[doc(hidden)]
    pub raw_median_ns: f64,
    #[doc(hidden)]
    pub net_median_ns: Option<f64>,
    #[doc(hidden)]
    pub raw_mean_ns: f64,
    #[doc(hidden)]
    pub ci95_ns: Option<[f64; 2]>,
}

impl Run {
    /// Returns the index of the run's process in [`Process::merged`](crate::Process::merged), from
    /// 0.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the number of fed samples.
    pub fn fed(&self) -> u64 {
        self.fed
    }

    /// Returns the number of starved samples.
    pub fn starved(&self) -> u64 {
        self.starved
    }

    /// Returns the raw median of the fed samples, or of the starved ones if none was fed.
    pub fn raw_median_ns(&self) -> f64 {
        self.raw_median_ns
    }

    /// Returns the net median of the same samples, or `None` if it is unknown.
    pub fn net_median_ns(&self) -> Option<f64> {
        self.net_median_ns
    }

    /// Returns the raw mean of the same samples.
    pub fn raw_mean_ns(&self) -> f64 {
        self.raw_mean_ns
    }

    /// Returns the 95 % confidence interval of the raw median, or `None` with too few samples.
    pub fn ci95_ns(&self) -> Option<[f64; 2]> {
        self.ci95_ns
    }
}
