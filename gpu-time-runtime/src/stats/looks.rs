//! Counts the looks at a growing series. Each look is another chance for the confidence interval of the median
//! to be wrong, so the interval widens with the number of looks.

/// The factor by which the number of samples must have grown for a look to count. Looks at nearly
/// the same samples see nearly the same median.
const GROWTH: f64 = 1.1;

/// The number of looks at a series so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    count: u32,
    /// The number of samples at the last look that counted.
    samples: f32,
}

impl Looks {
    /// Counts a look at `samples` samples, if their number has grown enough since the last look
    /// that counted.
    pub fn look(&mut self, samples: u64) {
        if samples > 0 && samples as f64 >= GROWTH * f64::from(self.samples) {
            self.count += 1;
            self.samples = samples as f32;
        }
    }

    /// Returns the number of looks.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_at_nearly_same_samples_is_not_counted() {
        let mut looks = Looks::default();
        let counts = [0, 10, 10, 11, 12, 13, 1_000].map(|samples| {
            looks.look(samples);
            looks.count()
        });
        assert_eq!(counts, [0, 1, 1, 2, 2, 3, 4]);
    }
}
