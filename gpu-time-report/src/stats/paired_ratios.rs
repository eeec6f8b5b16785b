//! The change between two programs or closures that run in turns.

use super::log_ratio::{ALPHA, LogRatio};
use super::student_t::{two_sided_p, two_sided_quantile};

/// The smallest number of pairs that gives an interval.
pub const FEWEST_PAIRS: u64 = 4;
/// The precision of the mixture, in units of the spread of one ratio. It expects a mean of about
/// twice the spread. A smaller value finds large changes in fewer pairs, a larger value finds small
/// changes in fewer.
const PRECISION: f64 = 0.25;

/// The logarithms of ratios. Each compares two programs measured at about the same time.
///
/// Each should be the mean over a block in the order ABBA or BAAB, chosen at random, so that a
/// drift and the effect of one program on the next cancel.
///
/// The interval and the p-value stay valid no matter how often the caller looks and when it stops.
/// Half of the error is for the looks before the end. They invert the mixture t-test (Lai 1976;
/// Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
/// variance", 2024): a ratio of likelihoods that ever exceeds `1 / alpha` with a probability of at
/// most `alpha`, for any spread. The other half is for the last look, which inverts Student's
/// t-test and therefore shows smaller changes. A 95 % interval needs at least 4 pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairedRatios {
    count: u64,
    /// The mean of the logarithms of the base's times.
    base: f64,
    /// The mean of the logarithms of the ratios.
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
    /// The smallest difference between two logarithms that the clock can show. Pairs that agree
    /// better than that say nothing about their spread.
    resolution: f64,
    look: Look,
}

/// The look at which an interval is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Any look: more pairs may follow.
    #[default]
    Early,
    /// The last look, at an end that did not depend on the ratios, such as a time limit.
    Last,
}

impl PairedRatios {
    /// Adds the logarithms of a pair of times, and the difference between logarithms that the clock
    /// can show. Ignores values that are not finite.
    pub fn record(&mut self, [base, new]: [f64; 2], resolution: f64) {
        let log_ratio = new - base;
        if !log_ratio.is_finite() {
            return;
        }
        self.count += 1;
        self.base += (base - self.base) / self.count as f64;
        let distance = log_ratio - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (log_ratio - self.mean);
        self.resolution = self.resolution.max(resolution);
    }

    /// Returns the same ratios at this look.
    pub fn at(self, look: Look) -> PairedRatios {
        PairedRatios { look, ..self }
    }

    /// Returns the number of pairs.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the difference between logarithms that the clock can show.
    pub fn resolution(&self) -> f64 {
        self.resolution
    }

    /// Returns the geometric means of both sides' times.
    pub fn times(&self) -> [f64; 2] {
        [self.base.exp(), (self.base + self.mean).exp()]
    }

    /// Returns the distance of the bounds from the mean. The bounds hold at every look with
    /// probability `1 - alpha`.
    fn early_distance(&self, alpha: f64) -> Option<f64> {
        let n = self.count as f64;
        let needed = ((n + PRECISION) / PRECISION).sqrt() / alpha;
        let needed = needed.powf(2.0 / n.max(1.0));
        let room = 1.0 - needed * PRECISION / (n + PRECISION);
        (self.count > 0 && room > 0.0).then(|| ((needed - 1.0) * self.spread() / (n * room)).sqrt())
    }

    fn early_p_value(&self, distance: f64) -> f64 {
        let n = self.count as f64;
        let spread = self.spread();
        let shift = n * distance * distance;
        let share = PRECISION / (n + PRECISION);
        let growth = ((spread + shift) / (spread + shift * share)).ln() * n / 2.0;
        (-(0.5 * share.ln() + growth)).exp()
    }

    /// Returns the standard error of the mean.
    fn error(&self) -> f64 {
        (self.spread() / self.degrees() / self.count as f64).sqrt()
    }

    fn degrees(&self) -> f64 {
        self.count as f64 - 1.0
    }

    /// Returns the sum of squares, plus the square of a clock step for each pair.
    fn spread(&self) -> f64 {
        self.squares + self.count as f64 * self.resolution.powi(2)
    }
}

impl LogRatio for PairedRatios {
    /// Returns the mean of the logarithms, or 0 if there are none.
    fn estimate(&self) -> f64 {
        self.mean
    }

    /// Returns an interval that holds at every look.
    fn interval(&self) -> Option<[f64; 2]> {
        let early = self.early_distance(ALPHA / 2.0);
        let last = || {
            let quantile = two_sided_quantile(ALPHA / 2.0, self.degrees());
            Some(quantile * self.error()).filter(|_| self.count >= FEWEST_PAIRS)
        };
        let distance = match self.look {
            Look::Early => early?,
            Look::Last => last().into_iter().chain(early).reduce(f64::min)?,
        };
        Some([self.mean - distance, self.mean + distance])
    }

    /// Returns a p-value that holds at every look.
    fn p_value(&self, truth: f64) -> f64 {
        let distance = self.mean - truth;
        if distance == 0.0 {
            return 1.0;
        }
        let early = self.early_p_value(distance);
        let p = match self.look {
            Look::Last if self.count >= FEWEST_PAIRS => {
                early.min(two_sided_p(distance / self.error(), self.degrees()))
            }
            _ => early,
        };
        (2.0 * p).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Returns a normal variable (Box and Muller).
    fn normal(random: &mut Rng) -> f64 {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.f64()).cos()
    }

    /// Returns the share of 1,000 series of unchanged pairs for which the interval excludes zero at
    /// any look, with one look after each pair. This is the largest share over several numbers of
    /// pairs.
    fn false_alarms(mut ratio: impl FnMut(&mut Rng) -> f64, resolution: f64) -> f64 {
        let mut of_length = |pairs: u32| {
            let mut random = Rng::with_seed(7);
            let excluded = (0..1_000).filter(|_| {
                let mut ratios = PairedRatios::default();
                // Draws every pair, so that each series uses the same part of the random numbers.
                (1..=pairs).fold(false, |excluded, pair| {
                    ratios.record([0.0, ratio(&mut random)], resolution);
                    let look = if pair == pairs { Look::Last } else { Look::Early };
                    let now = ratios.at(look);
                    let by_interval =
                        now.interval().is_some_and(|[low, high]| low > 0.0 || high < 0.0);
                    assert_eq!(by_interval, now.p_value(0.0) < 0.05);
                    excluded || by_interval
                })
            });
            excluded.count() as f64 / 1_000.0
        };
        [4, 10, 40, 300].map(&mut of_length).into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn interval_holds_at_every_look() {
        let noise = false_alarms(|random| 0.03 * normal(random), 0.0);
        // One run in ten is disturbed and takes up to half as long again.
        let outliers = |random: &mut Rng| {
            let mut run = || {
                let disturbed = if random.f64() < 0.1 { 0.4 * random.f64() } else { 0.0 };
                0.01 * normal(random) + disturbed
            };
            run() - run()
        };
        let outliers = false_alarms(outliers, 0.0);
        // The medians fall on one of two adjacent steps of the clock.
        let steps = |random: &mut Rng| {
            let mut step = || if random.bool() { 0.006 } else { 0.0 };
            step() - step()
        };
        let steps = false_alarms(steps, 0.006);
        // There is a drift, and a run is slower after one of the other program. A block in the
        // order ABBA or BAAB cancels both.
        let mut position = 0;
        let drift = |random: &mut Rng| {
            let mut run = || {
                position += 1;
                let (position, second) = (f64::from(position), f64::from(position % 2));
                let drift = 0.02 * f64::sin(position / 100.0) + 0.001 * position;
                drift + 0.01 * second + 0.002 * normal(random)
            };
            let [first, second, third, fourth] = std::array::from_fn(|_| run());
            let order = if random.bool() { 0.5 } else { -0.5 };
            order * (second + third - first - fourth)
        };
        let drift = false_alarms(drift, 0.0);
        for (case, share) in
            [("noise", noise), ("outliers", outliers), ("steps", steps), ("drift", drift)]
        {
            assert!(share <= 0.05, "{case}: {share}");
        }
        // The interval is not so wide that it would be useless.
        assert!(noise >= 0.005, "{noise}");
    }

    #[test]
    fn looking_at_a_t_test_would_give_false_alarms() {
        let mut random = Rng::with_seed(7);
        let excluded = (0..200).filter(|_| {
            let mut ratios = PairedRatios::default();
            (0..300).any(|_| {
                ratios.record([0.0, normal(&mut random)], 0.0);
                let n = ratios.count as f64;
                n > 3.0 && ratios.mean.abs() > 2.0 * (ratios.squares / (n - 1.0) / n).sqrt()
            })
        });
        assert!(excluded.count() > 40);
    }

    #[test]
    fn change_as_large_as_the_spread_is_found_within_40_pairs() {
        let mut random = Rng::with_seed(3);
        let found = (0..500).filter(|_| {
            let mut ratios = PairedRatios::default();
            (0..40).for_each(|_| ratios.record([0.0, 0.01 + 0.01 * normal(&mut random)], 0.0));
            let interval = ratios.interval();
            interval.is_some_and(|[low, high]| low > 0.0 && high < 0.03)
        });
        let found = found.count();
        assert!(found >= 475, "{found} of 500");
    }

    #[test]
    fn last_look_is_student_s_with_half_of_the_error() {
        let mut ratios = PairedRatios::default();
        [0.01, 0.02, 0.03, 0.02, 0.02]
            .into_iter()
            .for_each(|log| ratios.record([9.0, 9.0 + log], 0.0));
        // The standard deviation is 0.00707, and the quantile for 2.5 % with 4 degrees is 3.495.
        let [low, high] = ratios.at(Look::Last).interval().unwrap();
        assert!((low - 0.00895).abs() < 1e-5 && (high - 0.03105).abs() < 1e-5, "{low} {high}");
        let [early, _] = ratios.interval().unwrap();
        assert!(early < low, "{early} {low}");
    }

    #[test]
    fn few_pairs_have_no_interval() {
        let mut ratios = PairedRatios::default();
        let both = [Look::Early, Look::Last];
        for look in both {
            let ratios = ratios.at(look);
            assert_eq!((ratios.interval(), ratios.p_value(0.0)), (None, 1.0));
        }
        for _ in 0..3 {
            ratios.record([0.0, 0.5], 0.0);
            assert_eq!(both.map(|look| ratios.at(look).interval()), [None; 2]);
            assert!(both.into_iter().all(|look| ratios.at(look).p_value(0.0) > 0.05));
        }
        ratios.record([0.0, f64::NAN], 0.0);
        ratios.record([0.0, f64::NEG_INFINITY], 0.0);
        assert_eq!((ratios.count(), ratios.estimate()), (3, 0.5));
        ratios.record([0.0, 0.5], 0.0);
        assert_eq!(both.map(|look| ratios.at(look).interval()), [Some([0.5; 2]); 2]);
    }
}
