//! Summaries of sets of times.

use super::histogram::Histogram;
use super::moments::{self, Moments};
use super::statistics::Stats;

/// The exact moments of a set of times, and their histogram.
///
/// Statistics can be computed with a bias removed, where a time shorter than the bias becomes 0.
/// They are exact except for such times, which are only known to the resolution of the histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub(super) moments: Moments,
    pub(super) histogram: Histogram,
}

impl Summary {
    /// Creates a summary from moments and a histogram of the same times.
    pub fn new(moments: Moments, histogram: Histogram) -> Summary {
        Summary { moments, histogram }
    }

    /// Restores a summary from statistics and a histogram of the same times.
    pub fn of(stats: &Stats, histogram: Histogram) -> Summary {
        let Stats { min, max, mean, stddev, .. } = *stats;
        Summary { moments: Moments::of(histogram.count(), min, max, mean, stddev), histogram }
    }

    /// Adds the times of another summary.
    pub fn merge(&mut self, other: &Summary) {
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
    }

    /// Returns the times that `earlier`, a summary of the same series, did not contain. Their
    /// extremes are only as precise as their percentiles.
    pub fn since(&self, earlier: &Summary) -> Summary {
        let histogram = self.histogram.since(&earlier.histogram);
        let min = self.within(histogram.at_rank(1));
        let max = self.within(histogram.at_rank(u64::MAX));
        Summary { moments: self.moments.since(&earlier.moments, min, max), histogram }
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Returns the histogram.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Returns the statistics of the times minus `bias`, with `sum` as their sum, or `None` without
    /// times.
    pub fn stats(&self, bias: f64, sum: f64) -> Option<Stats> {
        let count = self.moments.count();
        if count == 0 {
            return None;
        }
        let ranked = self.histogram.count();
        let rank = |p: u64| (u128::from(ranked) * u128::from(p)).div_ceil(100) as u64;
        let percentile = |p: u64| less(self.at_rank(rank(p)), bias);
        Some(Stats {
            min: less(self.moments.min(), bias),
            p5: percentile(5),
            median: percentile(50),
            mean: self.mean(bias),
            p95: percentile(95),
            p99: percentile(99),
            max: less(self.moments.max(), bias),
            stddev: self.stddev(bias),
            sum,
        })
    }

    /// Returns the sum of the times minus `bias` each.
    pub fn sum(&self, bias: f64) -> f64 {
        if self.moments.count() == 0 {
            return 0.0;
        }
        let count = self.moments.count() as f64;
        let cut: f64 = self.cut(bias).map(|(ns, count)| count as f64 * (bias - ns)).sum();
        // The histogram has rounded the times that were cut. The sum must agree with the maximum all the same.
        let max = less(self.moments.max(), bias);
        (self.moments.sum() - count * bias + cut).min(count * max).max(max)
    }

    /// Returns the mean of the times minus `bias` each. There must be times.
    fn mean(&self, bias: f64) -> f64 {
        // The division may round up.
        (self.sum(bias) / self.moments.count() as f64).min(less(self.moments.max(), bias))
    }

    fn stddev(&self, bias: f64) -> f64 {
        if self.moments.min() >= bias {
            return self.moments.stddev();
        }
        let mean = self.mean(bias);
        let square = |(ns, count)| count as f64 * (less(self.within(ns), bias) - mean).powi(2);
        moments::stddev(self.histogram.iter().map(square).sum(), self.moments.count())
    }

    /// Returns the times shorter than `bias`, with their counts.
    fn cut(&self, bias: f64) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter().take_while(move |&(ns, _)| ns < bias)
    }

    /// Returns the time with this rank, to the resolution of the histogram.
    pub(super) fn at_rank(&self, rank: u64) -> f64 {
        self.within(self.histogram.at_rank(rank))
    }

    /// Clamps a time of the histogram to the extremes, which are exact.
    fn within(&self, ns: f64) -> f64 {
        ns.max(self.moments.min()).min(self.moments.max())
    }
}

fn less(ns: f64, bias: f64) -> f64 {
    (ns - bias).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::dependence::Dependence;
    use super::super::distribution::Distribution;
    use super::*;
    use proptest::prelude::*;

    fn of(times: &[f64]) -> Summary {
        let mut distribution = Distribution::new();
        times.iter().for_each(|&ns| distribution.record(ns));
        distribution.summary()
    }

    fn plain(times: &[f64]) -> Stats {
        let summary = of(times);
        summary.stats(0.0, summary.sum(0.0)).unwrap()
    }

    fn interval(times: &[f64]) -> Option<[f64; 2]> {
        of(times).median_interval(&Dependence::none(times.len() as u64), 1)
    }

    #[test]
    fn stats_of_nothing_are_none() {
        assert_eq!(of(&[]).stats(0.0, 0.0), None);
        for bias in [-1_000.0, 0.0, 1_000.0] {
            assert_eq!(of(&[]).sum(bias), 0.0);
        }
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn since_leaves_the_later_times() {
        let (early, late) = ([10_000.0; 30], [100_000.0, 300_000.0, 200_000.0]);
        let all: Vec<f64> = early.into_iter().chain(late).collect();
        let run = of(&all).since(&of(&early));
        let stats = run.stats(0.0, run.sum(0.0)).unwrap();
        assert_eq!(run.count(), 3);
        for (found, truth) in [
            (stats.min, 100_000.0),
            (stats.median, 200_000.0),
            (stats.max, 300_000.0),
            (stats.mean, 200_000.0),
            (stats.stddev, 100_000.0),
            (stats.sum, 600_000.0),
        ] {
            assert!((found - truth).abs() <= 33.0, "{found}, {truth}: {stats:?}");
        }
        assert_eq!(of(&early).since(&of(&early)).stats(0.0, 0.0), None);
    }

    #[test]
    fn stats_of_one_time() {
        let stats = plain(&[12_345.5]);
        for figure in
            [stats.min, stats.p5, stats.median, stats.mean, stats.p95, stats.p99, stats.max]
        {
            assert_eq!(figure, 12_345.5);
        }
        assert_eq!((stats.stddev, stats.sum), (0.0, 12_345.5));
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        let stats = plain(&times);
        assert_eq!((stats.p5, stats.median, stats.p95, stats.p99), (5.0, 50.0, 95.0, 99.0));
        assert_eq!(interval(&times).map(|ends| ends.map(f64::round)), Some([41.0, 60.0]));
        assert_eq!(plain(&[1.0, 2.0, 3.0]).median, 2.0);
        assert_eq!(plain(&[1.0, 2.0]).median, 1.0);
    }

    #[test]
    fn bias_is_clamped_to_the_time() {
        let stats = of(&[1000.0, 1500.0, 1800.0]).stats(1200.0, 0.0).unwrap();
        assert_eq!((stats.min, stats.median, stats.max), (0.0, 300.0, 600.0));
        assert_eq!((stats.mean, stats.stddev), (300.0, 300.0));
        assert_eq!(of(&[100.0, 200.0]).sum(1e6), 0.0);
    }

    #[test]
    fn rounded_times_below_the_bias_do_not_contradict_the_maximum() {
        let stats = |times: &[f64], bias: f64| {
            let summary = of(times);
            summary.stats(bias, summary.sum(bias)).unwrap()
        };
        // All times of a bucket count as its middle, whether it is above or below the bias.
        for bias in [40_064.0, 40_040.0] {
            for short in (40_000..bias as u32).map(f64::from) {
                for times in [&[short][..], &[short, short]] {
                    let none = stats(times, bias);
                    assert_eq!((none.min, none.mean, none.max), (0.0, 0.0, 0.0), "{short}");
                    assert_eq!((none.stddev, none.sum), (0.0, 0.0), "{short}");
                }
                let two = stats(&[short, 70_000.0], bias);
                assert!(two.max <= two.sum && two.mean <= two.max, "{short}: {two:?}");
            }
        }
    }

    #[test]
    fn mean_of_equal_times_is_at_most_the_maximum() {
        for count in 1..200 {
            let summary = of(&vec![12_345.7; count]);
            for bias in [0.0, 0.1, 1_200.3] {
                let stats = summary.stats(bias, summary.sum(bias)).unwrap();
                assert!(stats.mean <= stats.max, "{count} times, bias {bias}: {stats:?}");
            }
        }
    }

    fn times() -> impl Strategy<Value = Vec<f64>> {
        let time = prop_oneof![1.0f64..3000.0, 1000.0f64..1e6, 1e6f64..1e11];
        prop::collection::vec(time, 1..300)
    }

    proptest! {
        #[test]
        fn stats_agree_with_sorted_times(times in times(), bias in 0.0f64..5000.0) {
            let mut sorted: Vec<f64> = times.iter().map(|ns| (ns - bias).max(0.0)).collect();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len();
            let near = |ours: f64, truth: f64| {
                (ours - truth).abs() <= 33.0 + 0.002 * (truth + bias)
            };
            let summary = of(&times);
            let stats = summary.stats(bias, summary.sum(bias)).unwrap();
            for (percent, ours) in [(5, stats.p5), (50, stats.median), (95, stats.p95), (99, stats.p99)] {
                let rank = (n * percent).div_ceil(100);
                prop_assert!(near(ours, sorted[rank - 1]), "p{percent}: {ours}, {}", sorted[rank - 1]);
            }
            prop_assert!((stats.min - sorted[0]).abs() < 1e-6);
            prop_assert!((stats.max - sorted[n - 1]).abs() < 1e-6);

            let sum: f64 = sorted.iter().sum();
            prop_assert!((stats.sum - sum).abs() <= 33.0 * n as f64 + 1e-9 * sum);
            prop_assert!(near(stats.mean, sum / n as f64));
            prop_assert!(stats.mean <= stats.max && stats.max <= stats.sum);
            prop_assert!(stats.min <= stats.p5 && stats.p5 <= stats.median && stats.median <= stats.p95);
            prop_assert!(stats.p95 <= stats.p99 && stats.p99 <= stats.max);
            if let Some([low, high]) = interval(&times) {
                prop_assert!(low <= high && less(low, bias) <= stats.median && stats.median <= less(high, bias));
            }
        }
    }
}
