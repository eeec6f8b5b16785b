//! The total time of all calls of a function or of a path, estimated from those that were recorded.

use gpu_time_report::student_t::two_sided_quantile;

/// The minimum effective number of draws for an error. Fewer may lack the long calls that make up much of the total.
pub(crate) const FEWEST: f64 = 5.0;
/// With many draws, a total is more than `ERRORS` standard errors off with the probability `MISS`.
const MISS: f64 = 0.05;
const ERRORS: f64 = 1.96;

/// The choice of an outermost call to be opened, with all calls inside of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpeningDraw {
    /// Identifies the outermost call. Parts of one call have the same number.
    pub number: u64,
    /// The number of calls that the outermost call represents.
    pub weight: f64,
}

/// The number and the total time of a population of calls, estimated from a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub calls: f64,
    pub ns: f64,
    variance_of_calls: Variance,
    variance: Variance,
    covariance: f64,
    /// The number of the draw that the last call came from, and the sums over that draw's calls of `weight - 1` and
    /// of `(weight - 1) · ns`.
    draw: u64,
    drawn_calls: f64,
    drawn_ns: f64,
}

/// The variance of an estimate: the sum of what each draw contributes.
#[derive(Clone, Copy, Debug, Default)]
struct Variance {
    sum: f64,
    /// The sum of the squares of the contributions, without that of the current draw.
    squares: f64,
    current: f64,
}

impl Total {
    /// Adds a call that was drawn with a probability of 1 in `weight` (Horvitz–Thompson estimator). Different draws are
    /// independent. The calls of one are recorded together, and their times vary together. `calls` is 1, or 0 if the
    /// time is not that of a whole call.
    ///
    /// Two calls inside of an outer one that is opened with a probability of `p` are otherwise opened independently, so
    /// the covariance of their inclusion is `(1 - p1) · (1 - p2) · p / (1 - p)`, where `p1` and `p2` are their own
    /// probabilities. Pairs are seen when the outer call is opened, with a probability of `p`.
    pub fn add(&mut self, calls: f64, ns: f64, weight: f64, draw: OpeningDraw) {
        let [above_calls, above_ns] = [calls, ns].map(|value| (weight - 1.0) * value);
        // What is recorded in any case was not chosen together.
        if self.draw != draw.number || draw.weight <= 1.0 {
            self.variance_of_calls.end_draw();
            self.variance.end_draw();
            (self.draw, self.drawn_calls, self.drawn_ns) = (draw.number, 0.0, 0.0);
        }
        self.calls += weight * calls;
        self.ns += weight * ns;
        // If the outer call is always opened, so are those inside of it.
        let pairs = if draw.weight > 1.0 { draw.weight / (draw.weight - 1.0) } else { 0.0 };
        let of_calls = weight * above_calls * calls + 2.0 * pairs * above_calls * self.drawn_calls;
        self.variance_of_calls.add(of_calls);
        self.variance.add(weight * above_ns * ns + 2.0 * pairs * above_ns * self.drawn_ns);
        self.covariance += weight * above_calls * ns
            + pairs * (above_calls * self.drawn_ns + above_ns * self.drawn_calls);
        self.drawn_calls += above_calls;
        self.drawn_ns += above_ns;
    }

    /// Returns the standard error of the estimate, widened if there were few draws. If the number of all calls is known,
    /// it is that of the estimate after it has been multiplied by the ratio of this number to its estimate. `None` if the
    /// sample is too small.
    pub fn known_error_ns(&self, is_count_known: bool) -> Option<f64> {
        let of = if is_count_known {
            Total::standard_error_of_times_ns
        } else {
            Total::standard_error_ns
        };
        self.has_known_error().then(|| of(self) * self.widening())
    }

    /// Returns `true` if the sample is large enough to know its error.
    fn has_known_error(&self) -> bool {
        let has_enough = |variance: &Variance| variance.draws() >= FEWEST;
        has_enough(&self.variance_of_calls)
            && (self.variance.sum == 0.0 || has_enough(&self.variance))
    }

    /// Returns the standard error of the estimate.
    pub fn standard_error_ns(&self) -> f64 {
        self.variance.sum.max(0.0).sqrt()
    }

    /// Returns the factor by which two errors contain the truth as often as with many draws.
    fn widening(&self) -> f64 {
        let draws = self.variance_of_calls.draws();
        if draws > 1.0 { two_sided_quantile(MISS, draws - 1.0) / ERRORS } else { 1.0 }
    }

    /// Does the same for the estimate after it has been multiplied by the ratio of the number of calls to
    /// the estimate of this number (Hájek's ratio estimator). Calls of equal times leave no error.
    fn standard_error_of_times_ns(&self) -> f64 {
        let mean = if self.calls > 0.0 { self.ns / self.calls } else { 0.0 };
        let [of_ns, of_calls] = [self.variance.sum, self.variance_of_calls.sum];
        let variance = of_ns - 2.0 * mean * self.covariance + mean * mean * of_calls;
        variance.max(0.0).sqrt()
    }
}

impl Variance {
    fn add(&mut self, contribution: f64) {
        self.sum += contribution;
        self.current += contribution;
    }

    fn end_draw(&mut self) {
        self.squares += self.current.powi(2);
        self.current = 0.0;
    }

    /// Returns the effective number of draws: the square of the sum divided by the sum of the squares.
    fn draws(&self) -> f64 {
        let squares = self.squares + self.current.powi(2);
        if squares > 0.0 { self.sum.powi(2) / squares } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many runs of a program whose inner calls may be opened with their outer call or by themselves. Checks the error of
    /// the total, and that of the total by the known number of calls.
    #[test]
    fn errors_are_the_spreads_of_many_runs() {
        const RUNS: u32 = 2_000;
        const OUTER: u64 = 100;
        const CALLS: f64 = 10.0 * OUTER as f64;
        const TRUTH_NS: f64 = 550.0 * CALLS;
        let (outer_share, inner_share) = (0.1, 0.3);
        let weight = 1.0 / (1.0 - (1.0 - outer_share) * (1.0 - inner_share));
        let [mut by_weights, mut by_calls] = [Spread::default(); 2];
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..RUNS {
            let mut total = Total::default();
            for number in 1..=OUTER {
                let is_opened = rng.f64() < outer_share;
                for inner in 1..=10 {
                    let ns = 100.0 * f64::from(inner);
                    if is_opened {
                        let draw = OpeningDraw { number, weight: outer_share.recip() };
                        total.add(1.0, ns, weight, draw);
                    } else if rng.f64() < inner_share {
                        let number = 100 * number + u64::from(inner as u8) * 1_000_000;
                        total.add(1.0, ns, weight, OpeningDraw { number, weight });
                    }
                }
            }
            by_weights.add(total.ns - TRUTH_NS, total.standard_error_ns());
            let scale = CALLS / total.calls;
            let error_ns = scale * total.standard_error_of_times_ns();
            by_calls.add(scale * total.ns - TRUTH_NS, error_ns);
        }
        for spread in [by_weights, by_calls] {
            let (bias, ratio) = spread.compared(f64::from(RUNS), TRUTH_NS);
            assert!(bias.abs() < 0.01 && (ratio - 1.0).abs() < 0.1, "{bias} {ratio}");
        }
        assert!(by_calls.squares < 0.2 * by_weights.squares, "{by_calls:?} {by_weights:?}");
    }

    /// The distances of many estimates from the truth, and their errors.
    #[derive(Clone, Copy, Debug, Default)]
    struct Spread {
        sum: f64,
        squares: f64,
        variances: f64,
    }

    impl Spread {
        fn add(&mut self, from_truth: f64, error: f64) {
            self.sum += from_truth;
            self.squares += from_truth.powi(2);
            self.variances += error.powi(2);
        }

        /// Returns the relative bias, and the mean stated variance divided by the true one.
        fn compared(self, runs: f64, truth: f64) -> (f64, f64) {
            (self.sum / runs / truth, self.variances / self.squares)
        }
    }

    /// One call in a hundred takes a thousand times as long as the others, and makes up most of the error.
    #[test]
    fn few_draws_do_not_tell_the_error() {
        let is_known = |draws: u64, long: u64| {
            let mut total = Total::default();
            for number in 1..=draws {
                let ns = if number.is_multiple_of(long) { 1e6 } else { 1e3 };
                total.add(1.0, ns, 10.0, OpeningDraw { number, weight: 10.0 });
            }
            total.has_known_error()
        };
        assert_eq!([is_known(4, 100), is_known(5, 100)], [false, true]);
        assert_eq!([is_known(400, 100), is_known(600, 100)], [false, true]);
        let mut all = Total::default();
        (1..=100).for_each(|number| all.add(1.0, 1e3, 1.0, OpeningDraw { number, weight: 1.0 }));
        assert_eq!((all.standard_error_ns(), all.standard_error_of_times_ns()), (0.0, 0.0));
    }
}
