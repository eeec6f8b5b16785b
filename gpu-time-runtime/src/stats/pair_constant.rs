//! A robust mean of the times that a held event pair measures around an empty kernel.

use crate::stats::quantile::quantile;

/// The fraction of samples that the trimmed mean drops at either end, which makes it the
/// interquartile mean. Disturbances, such as another process on the GPU or a memory refresh, only
/// lengthen a held pair, so they land in the upper part. A low quantile would be wrong: measured
/// times vary in the same way, and the usual value must be subtracted from their median. The median
/// would be wrong too: on some H200s the constant alternates between two values, and the median is
/// one or the other by chance.
const TRIMMED: f64 = 0.25;
/// The upper quantile that defines the spread.
const HIGH: f64 = 0.9;
/// Half the width of the binomial interval for the median, in standard deviations of the number of
/// samples below the median. It gives an interval with 99 % confidence.
const DEVIATIONS: f64 = 2.6;

/// The time that a held pair measures around an empty kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PairConstant {
    /// The interquartile mean, in nanoseconds.
    pub ns: f64,
    /// The distance from the mean to the 90 % quantile.
    pub spread_ns: f64,
    /// The binomial (order-statistic) interval for the median, at 99 %.
    pub interval_ns: [f64; 2],
}

impl PairConstant {
    /// Computes the constant from samples. Returns `None` if there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<PairConstant> {
        samples.sort_by(f64::total_cmp);
        let ns = middle_mean(&samples)?;
        let around = DEVIATIONS * (0.25 / samples.len() as f64).sqrt();
        let [low, high] = [0.5 - around, 0.5 + around].map(|share| quantile(&samples, share));
        Some(PairConstant {
            ns,
            spread_ns: quantile(&samples, HIGH)? - ns,
            interval_ns: [low?, high?],
        })
    }

    /// Returns the smallest change of the median that is consistent with both intervals, up or
    /// down. On some H200s the constant alternates between two values 0.2 µs apart, and either may
    /// be the median by chance.
    pub fn distance_ns(&self, later: &PairConstant) -> f64 {
        let ([low, high], [later_low, later_high]) = (self.interval_ns, later.interval_ns);
        (later_low - high).max(low - later_high).max(0.0)
    }
}

/// The time that an event pair measures with no work between its events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Floor {
    /// The median of the empty pair, in nanoseconds.
    pub pair_ns: f64,
    /// The resolution of event times in nanoseconds, once two samples have differed by one step.
    pub step_ns: Option<f64>,
}

impl Floor {
    /// Returns the longest raw time that counts as an empty bracket: within two steps of the empty
    /// pair.
    pub fn limit_ns(self) -> f64 {
        self.pair_ns + 2.0 * self.step_ns.unwrap_or(0.0)
    }
}

fn middle_mean(sorted: &[f64]) -> Option<f64> {
    let end = (sorted.len() as f64 * TRIMMED) as usize;
    let middle = sorted.get(end..sorted.len() - end).filter(|middle| !middle.is_empty())?;
    Some(middle.iter().sum::<f64>() / middle.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the constant for `count` samples, a fraction `share` of which have the second value.
    fn two(count: usize, [one, other]: [f64; 2], share: f64) -> PairConstant {
        let others = (count as f64 * share).round() as usize;
        PairConstant::of((0..count).map(|i| if i < others { other } else { one }).collect())
            .unwrap()
    }

    #[test]
    fn distance_of_constant_values_is_their_difference() {
        let [first, last] = [2_752.0, 2_848.0].map(|ns| two(64, [ns, ns], 0.0));
        assert_eq!((first.distance_ns(&last), last.distance_ns(&first)), (96.0, 96.0));
        assert_eq!((first.spread_ns, first.interval_ns), (0.0, [2_752.0; 2]));
        assert_eq!(PairConstant::of(Vec::new()), None);
    }

    #[test]
    fn outliers_are_trimmed() {
        let disturbed = |count| two(200, [2_752.0, 9_000.0], count as f64 / 200.0).ns;
        assert_eq!([0, 1, 50].map(disturbed), [2_752.0; 3]);
        assert!(disturbed(51) > 2_752.0);
    }

    /// A few additional samples of either value hardly change the mean.
    #[test]
    fn mean_of_two_values_follows_majority() {
        let both = |share| two(200, [2_752.0, 2_976.0], share).ns;
        assert_eq!([0.2, 0.5, 0.8].map(both), [2_752.0, 2_864.0, 2_976.0]);
        assert!((both(0.52) - both(0.48)).abs() < 20.0);
    }

    #[test]
    fn alternating_values_move_only_together() {
        let both = |share, moved| two(64, [2_752.0, 2_976.0].map(|ns| ns + moved), share);
        for share in [0.45, 0.5, 0.6, 0.7] {
            assert_eq!(two(200, [2_752.0, 2_976.0], 0.5).distance_ns(&both(share, 0.0)), 0.0);
        }
        assert!(two(200, [2_752.0, 2_976.0], 0.5).distance_ns(&both(0.6, 2_000.0)) >= 1_776.0);
        // The other value has become the median.
        assert_eq!(two(200, [2_752.0, 2_976.0], 0.2).distance_ns(&both(0.9, 0.0)), 224.0);
    }
}
