//! Summary statistics of a series.

use serde::{Deserialize, Serialize};

/// Summary statistics of the times of a series, in nanoseconds.
///
/// Percentiles are by nearest rank: the shortest time that at least that percentage of the times
/// does not exceed. A percentile is therefore a measured time, to within the resolution of the
/// histogram: 1 ns up to 2 µs, 32 ns up to 1 ms, and 0.2 % above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    #[doc(hidden)]
    pub min: f64,
    #[doc(hidden)]
    pub p5: f64,
    #[doc(hidden)]
    pub median: f64,
    #[doc(hidden)]
    pub mean: f64,
    #[doc(hidden)]
    pub p95: f64,
    #[doc(hidden)]
    pub p99: f64,
    #[doc(hidden)]
    pub max: f64,
    #[doc(hidden)]
    pub stddev: f64,
    #[doc(hidden)]
    pub sum: f64,
}

impl Stats {
    /// Returns the shortest time.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// Returns the 5th percentile.
    pub fn p5(&self) -> f64 {
        self.p5
    }

    /// Returns the 50th percentile.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the 95th percentile.
    pub fn p95(&self) -> f64 {
        self.p95
    }

    /// Returns the 99th percentile.
    pub fn p99(&self) -> f64 {
        self.p99
    }

    /// Returns the longest time.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Returns the standard deviation, with `n - 1` in the denominator; 0 for a single time.
    pub fn stddev(&self) -> f64 {
        self.stddev
    }

    /// Returns the sum of all measured times, including the starved ones that the other statistics
    /// leave out. A sample in which nothing ran adds nothing.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}
