//! Moments of values, exact for any number of them: count, extremes, sum and spread.

/// Count, extremes, sum and sum of squared deviations of values.
///
/// Invariant: with a count of 0 all other fields are 0. The deviations are from the running mean
/// (Welford's recurrence), because the difference of two sums of squares loses the spread of long
/// times that lie close together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    mean: f64,
    deviations: f64,
}

impl Moments {
    /// Creates the moments of no value.
    pub const fn new() -> Moments {
        Moments { count: 0, min: 0.0, max: 0.0, sum: 0.0, mean: 0.0, deviations: 0.0 }
    }

    /// Records one value.
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.count += 1;
        if self.count == 1 {
            (self.min, self.max) = (value, value);
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += value;
        let from_old_mean = value - self.mean;
        self.mean += from_old_mean / self.count as f64;
        self.deviations += from_old_mean * (value - self.mean);
    }

    /// Restores the moments of `count` values with this mean, standard deviation and extremes.
    pub fn of(count: u64, min: f64, max: f64, mean: f64, stddev: f64) -> Moments {
        if count == 0 {
            return Moments::default();
        }
        let n = count as f64;
        let deviations = stddev * stddev * (n - 1.0);
        Moments { count, min, max, sum: mean * n, mean, deviations }
    }

    /// Adds the values of `other`, exactly but for rounding (the parallel form of the recurrence).
    pub fn merge(&mut self, other: &Moments) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        let share = theirs / (ours + theirs);
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.mean += apart * share;
        self.deviations += other.deviations + apart * apart * ours * share;
    }

    /// Returns the moments of the values that `earlier` did not contain. Exact but for rounding;
    /// the caller provides their extremes.
    pub fn since(&self, earlier: &Moments, min: f64, max: f64) -> Moments {
        let count = self.count.saturating_sub(earlier.count);
        if count == 0 {
            return Moments::default();
        }
        let (all, theirs, ours) = (self.count as f64, earlier.count as f64, count as f64);
        let mean = ((self.mean * all - earlier.mean * theirs) / ours).clamp(min, max);
        let apart = mean - earlier.mean;
        let between = apart * apart * theirs * ours / all;
        let deviations = (self.deviations - earlier.deviations - between).max(0.0);
        Moments { count, min, max, sum: mean * ours, mean, deviations }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest value.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// Returns the largest value.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the sample standard deviation (`n - 1` in the denominator), 0 for fewer than two
    /// values.
    pub fn stddev(&self) -> f64 {
        stddev(self.deviations, self.count)
    }
}

/// Computes the sample standard deviation from a sum of squared deviations.
pub fn stddev(deviations: f64, count: u64) -> f64 {
    if count < 2 { 0.0 } else { (deviations / (count - 1) as f64).max(0.0).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&v| moments.record(v));
        moments
    }

    #[test]
    fn stddev_of_few_values_is_zero() {
        assert_eq!(of(&[]), Moments::default());
        assert_eq!(of(&[7.0]).stddev(), 0.0);
        assert_eq!(of(&[7.0]).min(), 7.0);
    }

    #[test]
    fn stddev_of_long_times_is_exact() {
        // One second each, 32 ns apart: a double cannot resolve the difference of their squares.
        let values: Vec<f64> = (0..100_000).map(|i| 1e9 + f64::from(i % 2) * 32.0).collect();
        assert!((of(&values).stddev() - 16.0).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn merge_agrees_with_record(values in prop::collection::vec(0.0f64..1e7, 0..200), cut in 0.0..1.0) {
            let (one, other) = values.split_at((cut * values.len() as f64) as usize);
            let restored = |values: &[f64]| {
                let all = of(values);
                Moments::of(all.count(), all.min(), all.max(), all.mean, all.stddev())
            };
            let (mut merged, whole) = (restored(one), of(&values));
            merged.merge(&restored(other));
            prop_assert_eq!((merged.count(), merged.min(), merged.max()), (whole.count(), whole.min(), whole.max()));
            prop_assert!((merged.sum() - whole.sum()).abs() <= 1e-9 * whole.sum());
            prop_assert!((merged.stddev() - whole.stddev()).abs() <= 1e-6 * (1.0 + whole.stddev()));
        }

        #[test]
        fn since_agrees_with_record(values in prop::collection::vec(0.0f64..1e7, 1..200), cut in 0.0..1.0) {
            let (one, other) = values.split_at((cut * values.len() as f64) as usize);
            let (part, whole) = (of(other), of(&values));
            let found = whole.since(&of(one), part.min(), part.max());
            prop_assert_eq!((found.count(), found.min(), found.max()), (part.count(), part.min(), part.max()));
            prop_assert!((found.sum() - part.sum()).abs() <= 1e-6 * (1.0 + whole.sum()));
            prop_assert!((found.stddev() - part.stddev()).abs() <= 1e-3 * (1.0 + whole.stddev()));
        }

        #[test]
        fn moments_agree_with_their_definitions(values in prop::collection::vec(0.0f64..1e7, 2..200)) {
            let moments = of(&values);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert_eq!(moments.count(), values.len() as u64);
            prop_assert_eq!(moments.min(), values.iter().copied().fold(f64::MAX, f64::min));
            prop_assert_eq!(moments.max(), values.iter().copied().fold(0.0, f64::max));
            prop_assert!((moments.sum() - mean * n).abs() <= 1e-6 * n);
            prop_assert!((moments.stddev() - variance.sqrt()).abs() <= 1e-6 * (1.0 + variance.sqrt()));
        }
    }
}
