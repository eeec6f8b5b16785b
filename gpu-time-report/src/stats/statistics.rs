//! Summary statistics of a series.

use serde::{Deserialize, Serialize};

/// What the times of a series were, in nanoseconds.
///
/// A percentile is the time of the nearest rank: the shortest of the times that at least so many
/// percent of them do not exceed. It is therefore a time that was measured, to the resolution of what
/// is kept: 1 ns up to 2 µs, 32 ns up to 1 ms, 0.2 % above.
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
    /// The shortest time.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The 5th percentile.
    pub fn p5(&self) -> f64 {
        self.p5
    }

    /// The 50th percentile.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The 95th percentile.
    pub fn p95(&self) -> f64 {
        self.p95
    }

    /// The 99th percentile.
    pub fn p99(&self) -> f64 {
        self.p99
    }

    /// The longest time.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The standard deviation, with `n - 1` in the denominator; 0 for a single time.
    pub fn stddev(&self) -> f64 {
        self.stddev
    }

    /// The sum of all measured times, also of starved ones that the other figures leave out. A sample
    /// inside which nothing ran adds nothing.
    pub fn sum(&self) -> f64 {
        self.sum
    }
}
