//! Summary statistics of a series.

use serde::{Deserialize, Serialize};

/// Summary statistics of the times of a series, in nanoseconds.
///
/// Percentiles are by nearest rank: the shortest time that at least that percentage of the times
/// does not exceed. A percentile is therefore a measured time, to within the resolution of the
/// histogram: 1 ns up to 2 µs, 32 ns up to 1 ms, and 0.2 % above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// The shortest time.
    pub min: f64,
    /// The 5th percentile.
    pub p5: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest time.
    pub max: f64,
    /// The standard deviation, with `n - 1` in the denominator; 0 for a single time.
    pub stddev: f64,
    /// The sum of all measured times, including the starved ones that the other statistics leave
    /// out. A sample in which nothing ran adds nothing.
    pub sum: f64,
}

impl Stats {
    /// Converts every statistic.
    #[must_use]
    #[doc(hidden)]
    pub fn map(self, convert: impl Fn(f64) -> f64) -> Stats {
        let Stats { min, p5, median, mean, p95, p99, max, stddev, sum } = self;
        let [min, p5, median, mean, p95] = [min, p5, median, mean, p95].map(&convert);
        let [p99, max, stddev, sum] = [p99, max, stddev, sum].map(convert);
        Stats { min, p5, median, mean, p95, p99, max, stddev, sum }
    }
}
