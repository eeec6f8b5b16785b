//! What a held pair of events reads around a kernel that does nothing, from samples of it: pure.

/// Whatever disturbs a held pair makes it longer: another process on the GPU, a memory refresh. So the
/// constant lies low; but not at the low end, because what it is subtracted from varies in the same way,
/// and a median must be relieved of what is usual. Where the pairs of an H200 varied by 0.3 µs, a tenth
/// left 0.1 µs in every median.
const LOW: f64 = 0.4;
const HIGH: f64 = 0.9;
/// The interval of a quantile has so many standard deviations to either side of it, of the number of
/// samples that lie below: 99 % of them hold it.
const DEVIATIONS: f64 = 2.6;

/// What held pairs read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Constant {
    /// A low quantile, in nanoseconds.
    pub ns: f64,
    /// From there to a high one.
    pub spread_ns: f64,
    /// What holds the true low quantile, by how many samples there are and how they vary.
    pub interval_ns: [f64; 2],
}

impl Constant {
    /// That of these samples; `None` without any.
    pub fn of(mut samples: Vec<f64>) -> Option<Constant> {
        samples.sort_by(f64::total_cmp);
        let ns = quantile(&samples, LOW)?;
        let around = DEVIATIONS * (LOW * (1.0 - LOW) / samples.len() as f64).sqrt();
        let [low, high] = [LOW - around, LOW + around].map(|share| quantile(&samples, share));
        Some(Constant { ns, spread_ns: quantile(&samples, HIGH)? - ns, interval_ns: [low?, high?] })
    }

    /// By how much at least the quantile has moved since, up or down: on some H200s the constant has two
    /// values, 0.2 µs apart, that take turns, and which of them a quantile is may be by chance.
    pub fn distance_ns(&self, later: &Constant) -> f64 {
        let ([low, high], [later_low, later_high]) = (self.interval_ns, later.interval_ns);
        (later_low - high).max(low - later_high).max(0.0)
    }
}

/// The sample below which this share of the others lies.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (sorted.len().checked_sub(1)? as f64 * share.clamp(0.0, 1.0)).round();
    sorted.get(at as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many samples, of which this share reads the second value.
    fn two(count: usize, [one, other]: [f64; 2], share: f64) -> Constant {
        let others = (count as f64 * share).round() as usize;
        Constant::of((0..count).map(|i| if i < others { other } else { one }).collect()).unwrap()
    }

    #[test]
    fn one_value_moves_by_what_it_moves() {
        let [first, last] = [2_752.0, 2_848.0].map(|ns| two(64, [ns, ns], 0.0));
        assert_eq!((first.distance_ns(&last), last.distance_ns(&first)), (96.0, 96.0));
        assert_eq!((first.spread_ns, first.interval_ns), (0.0, [2_752.0; 2]));
        assert_eq!(Constant::of(Vec::new()), None);
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
