//! What a held pair of events reads around a kernel that does nothing, from samples of it: pure.

use crate::stats::quantile::quantile;

/// This share of the samples is left out at either end, and what remains is averaged. Whatever disturbs a
/// held pair makes it longer, another process on the GPU or a memory refresh, and is among what is left out.
/// A lower figure would not do: what it is subtracted from varies in the same way, and a median must be
/// relieved of what is usual. Nor would a median: where the constant has two values that take turns, as on
/// some H200s, it is one or the other by chance.
const LEFT_OUT: f64 = 0.25;
const HIGH: f64 = 0.9;
/// The interval of the median has so many standard deviations to either side of it, of the number of
/// samples that lie below: 99 % of them hold it.
const DEVIATIONS: f64 = 2.6;

/// What held pairs read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PairConstant {
    /// The mean of their middle half, in nanoseconds.
    pub ns: f64,
    /// From there to a high quantile.
    pub spread_ns: f64,
    /// What holds the true median, by how many samples there are and how they vary.
    pub interval_ns: [f64; 2],
}

impl PairConstant {
    /// That of these samples; `None` without any.
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

    /// By how much at least the median has moved since, up or down: on some H200s the constant has two
    /// values, 0.2 µs apart, that take turns, and which of them is the usual one may be by chance.
    pub fn distance_ns(&self, later: &PairConstant) -> f64 {
        let ([low, high], [later_low, later_high]) = (self.interval_ns, later.interval_ns);
        (later_low - high).max(low - later_high).max(0.0)
    }
}

/// What a pair of events reads with nothing between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Floor {
    /// Median of the empty pair in nanoseconds.
    pub pair_ns: f64,
    /// The step in which event times move, in nanoseconds, once samples differed by it.
    pub step_ns: Option<f64>,
}

impl Floor {
    /// The longest raw time that says that nothing ran inside: within two steps of the empty pair.
    pub fn limit_ns(self) -> f64 {
        self.pair_ns + 2.0 * self.step_ns.unwrap_or(0.0)
    }
}

fn middle_mean(sorted: &[f64]) -> Option<f64> {
    let end = (sorted.len() as f64 * LEFT_OUT) as usize;
    let middle = sorted.get(end..sorted.len() - end).filter(|middle| !middle.is_empty())?;
    Some(middle.iter().sum::<f64>() / middle.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples, of which this share reads the second value.
    fn two(count: usize, [one, other]: [f64; 2], share: f64) -> PairConstant {
        let others = (count as f64 * share).round() as usize;
        PairConstant::of((0..count).map(|i| if i < others { other } else { one }).collect())
            .unwrap()
    }

    #[test]
    fn one_value_moves_by_what_it_moves() {
        let [first, last] = [2_752.0, 2_848.0].map(|ns| two(64, [ns, ns], 0.0));
        assert_eq!((first.distance_ns(&last), last.distance_ns(&first)), (96.0, 96.0));
        assert_eq!((first.spread_ns, first.interval_ns), (0.0, [2_752.0; 2]));
        assert_eq!(PairConstant::of(Vec::new()), None);
    }

    #[test]
    fn what_disturbs_a_few_pairs_counts_for_nothing() {
        let disturbed = |count| two(200, [2_752.0, 9_000.0], count as f64 / 200.0).ns;
        assert_eq!([0, 1, 50].map(disturbed), [2_752.0; 3]);
        assert!(disturbed(51) > 2_752.0);
    }

    /// A few samples more of the one or the other move it by little.
    #[test]
    fn between_two_values_it_lies_where_most_are() {
        let both = |share| two(200, [2_752.0, 2_976.0], share).ns;
        assert_eq!([0.2, 0.5, 0.8].map(both), [2_752.0, 2_864.0, 2_976.0]);
        assert!((both(0.52) - both(0.48)).abs() < 20.0);
    }

    #[test]
    fn two_values_that_take_turns_have_not_moved_unless_both_have() {
        let both = |share, moved| two(64, [2_752.0, 2_976.0].map(|ns| ns + moved), share);
        for share in [0.45, 0.5, 0.6, 0.7] {
            assert_eq!(two(200, [2_752.0, 2_976.0], 0.5).distance_ns(&both(share, 0.0)), 0.0);
        }
        assert!(two(200, [2_752.0, 2_976.0], 0.5).distance_ns(&both(0.6, 2_000.0)) >= 1_776.0);
        // The other value has become the usual one.
        assert_eq!(two(200, [2_752.0, 2_976.0], 0.2).distance_ns(&both(0.9, 0.0)), 224.0);
    }
}
