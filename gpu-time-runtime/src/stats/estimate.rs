//! Estimates the total time of all calls from the sampled ones.
//!
//! A call timed with probability 1/w represents w calls. The Horvitz–Thompson estimator, which is
//! the sum of weight × time, is unbiased for any times, even if the probabilities change during the
//! run. The sum of the weights estimates the number of calls, which is known exactly, so the total
//! is scaled by the ratio of the two (Hájek's ratio estimator). If all calls take the same time,
//! this estimate has no error. The ratio's bias falls in inverse proportion to the number of
//! samples.

use crate::stats::{sampling::Population, since::impl_since};
use crate::types::sample::Sample;
use gpu_time_report::UnknownError;

/// The minimum number of samples for an estimate of the error. A kind of slow call that occurs once
/// in 1,000 may make up most of the total. Among 5,000 samples, it is missing with a probability
/// below 1 %.
const FEWEST: f64 = 5_000.0;

/// The minimum effective number of samples that the error comes from. If fewer samples dominate the
/// error, the sample contains too few such calls to estimate it.
const FEWEST_BEHIND: f64 = 60.0;

/// Weighted sums over the samples. They account for the calls that were not timed, and for opened
/// calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WeightedSums {
    /// Σ (weight − 1) × time, and × brackets. For opened calls, Σ weight × time, without brackets.
    ns: f64,
    brackets: f64,
    /// Σ v, Σ v × time and Σ v × time², with v = weight × (weight − 1).
    v: f64,
    v_ns: f64,
    v_ns2: f64,
    /// The number of samples.
    samples: f64,
    /// The time of the first sample.
    origin: f64,
    /// Σ v² × (time − origin)ⁿ for n from 0 to 4.
    powers: [f64; 5],
}

impl_since!(WeightedSums { ns, brackets, v, v_ns, v_ns2, samples, powers; keep origin });

/// A total and its standard error, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub total_ns: f64,
    /// The standard error as computed from the samples.
    pub sampled_error_ns: f64,
    /// The reason why the computed error is unreliable, if it is.
    pub unknown_error: Option<UnknownError>,
}

impl Estimate {
    /// Returns the standard error, or the reason why it is unknown.
    pub fn error_ns(&self) -> Result<f64, UnknownError> {
        self.unknown_error.map_or(Ok(self.sampled_error_ns), Err)
    }
}

impl WeightedSums {
    /// Records a sample with a weight above 1.
    #[cold]
    pub fn record(&mut self, sample: Sample) {
        let (weight, ns) = (f64::from(sample.weight), sample.alone_ns());
        self.ns += (weight - 1.0) * ns;
        self.brackets += (weight - 1.0) * f64::from(sample.brackets);
        self.record_variance(weight, ns);
    }

    /// Records an opened call, whose time is not among the samples and contains no event bias.
    #[cold]
    pub fn record_opened(&mut self, sample: Sample) {
        let (weight, ns) = (f64::from(sample.weight), sample.alone_ns());
        self.ns += weight * ns;
        if weight != 1.0 {
            self.record_variance(weight, ns);
        }
    }

    fn record_variance(&mut self, weight: f64, ns: f64) {
        let v = weight * (weight - 1.0);
        self.v += v;
        self.v_ns += v * ns;
        self.v_ns2 += v * ns * ns;
        if self.samples == 0.0 {
            self.origin = ns;
        }
        self.samples += 1.0;
        let mut term = v * v;
        for power in &mut self.powers {
            *power += term;
            term *= ns - self.origin;
        }
    }

    /// Estimates the total time of a series, with its opened calls. `seen_ns` is the sum of its samples,
    /// without their bias. For the calls that were not timed, `bias_ns` is subtracted for each bracket. A
    /// sample has `brackets` brackets on average.
    pub fn total(
        &self,
        seen_ns: f64,
        bias_ns: f64,
        brackets: f64,
        population: Population,
    ) -> Estimate {
        let Population { weights, variance, is_estimated, .. } = population;
        let ns = seen_ns + (self.ns - bias_ns * self.brackets).max(0.0);
        let scale = population.scale();
        // The site's calls outside this series count with a time of 0. An unknown number of calls has an error of its
        // own, so that the times themselves vary, and not their distances from the mean.
        let mean = if weights > 0.0 && !is_estimated { ns / weights } else { 0.0 };
        let bias = bias_ns * brackets;
        let v_ns = self.v_ns - bias * self.v;
        let v_ns2 = self.v_ns2 - 2.0 * bias * self.v_ns + bias * bias * self.v;
        let squares = v_ns2 - 2.0 * mean * v_ns + mean * mean * variance;
        // The total cannot be less than the measured part.
        let total_ns = (ns * scale).max(seen_ns);
        Estimate {
            total_ns,
            sampled_error_ns: scale * squares.max(0.0).sqrt(),
            unknown_error: self.unknown_error(mean + bias, scale),
        }
    }

    /// Returns the reason why the error is unknown, if it is, for calls that take `mean` on
    /// average, and are multiplied by `scale`.
    ///
    /// The square of the error is a sum with one term per sample. The effective number of samples
    /// is the square of that sum divided by the sum of the squared terms.
    fn unknown_error(&self, mean: f64, scale: f64) -> Option<UnknownError> {
        if self.samples == 0.0 {
            // Either every call is timed, or the samples stand for themselves and tell nothing of the others.
            return (scale > 1.0 + 1e-9).then_some(UnknownError::Few);
        }
        if self.samples < FEWEST {
            return Some(UnknownError::Few);
        }
        let sum = self.v_ns2 - 2.0 * mean * self.v_ns + mean * mean * self.v;
        let m = mean - self.origin;
        let [one, first, second, third, fourth] = self.powers;
        let squares = fourth - 4.0 * m * third + 6.0 * m * m * second - 4.0 * m.powi(3) * first
            + m.powi(4) * one;
        // If all times are equal, the sum consists of rounding errors.
        let is_spread = sum <= 1e-12 * self.v_ns2 || sum * sum >= FEWEST_BEHIND * squares;
        (!is_spread).then_some(UnknownError::Dominated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sampling::Sampler;
    use crate::types::sampling::Sampling;

    /// Estimates the total for calls with times `call(i)`, sampled at rates `sampling(i)`.
    fn estimate(
        calls: u64,
        call: impl Fn(u64) -> f64,
        sampling: impl Fn(u64) -> Sampling,
    ) -> Estimate {
        let (sampler, mut weighted, mut seen_ns) =
            (Sampler::default(), WeightedSums::default(), 0.0);
        let (mut skips, mut unsampled) = (0, 0);
        for i in 0..calls {
            if skips == 0 {
                let drawn = sampler.draw(sampling(i), 64);
                skips = drawn.skips;
                match drawn.weight {
                    None => unsampled += 1,
                    Some(weight) => {
                        let sample = Sample::new(call(i)).unwrap().weighted(weight);
                        seen_ns += sample.alone_ns();
                        if weight != 1.0 {
                            weighted.record(sample);
                        }
                    }
                }
            } else {
                skips -= 1;
                unsampled += 1;
            }
        }
        weighted.total(seen_ns, 0.0, 1.0, sampler.population(unsampled))
    }

    /// Enough for 160 slow samples, of which 60 are needed for an error.
    const CALLS: u64 = 1_600_000;

    /// Returns the time of a call. Every hundredth call is slow.
    fn periodic(i: u64) -> f64 {
        if i % 100 == 99 { 101_000.0 } else { 1_000.0 }
    }

    #[test]
    fn periodic_load_biases_count_and_not_share() {
        let truth = CALLS as f64 * 2_000.0;
        let counted = estimate(CALLS, periodic, |_| Sampling::every(100));
        assert_eq!(counted.total_ns, CALLS as f64 * 101_000.0);
        let drawn = estimate(CALLS, periodic, |_| Sampling::share(0.01));
        // Seven standard errors: one run in 10¹¹.
        let error_ns = drawn.error_ns().unwrap();
        assert!((drawn.total_ns - truth).abs() < 7.0 * error_ns, "{drawn:?}");
        assert!(error_ns < 0.5 * truth, "{drawn:?}");
    }

    /// Slow calls occur while the rate is low, so the plain mean of the samples is far off.
    #[test]
    fn rate_that_follows_load_does_not_bias_total() {
        let is_slow = |i: u64| i / 20_000 % 2 == 1;
        let call = |i| if is_slow(i) { 50_000.0 } else { 1_000.0 };
        let share = |i| Sampling::share(if is_slow(i) { 0.01 } else { 0.5 });
        let truth = CALLS as f64 * 25_500.0;
        let drawn = estimate(CALLS, call, share);
        let error_ns = drawn.error_ns().unwrap();
        assert!((drawn.total_ns - truth).abs() < 7.0 * error_ns, "{drawn:?}");
        assert!(error_ns < 0.1 * truth, "{drawn:?}");
    }

    #[test]
    fn standard_error_matches_scatter_of_runs() {
        let call = |i: u64| ((i * 7919) % 1_000) as f64;
        for (calls, share) in [(100_000, 0.1), (20_000, 0.5)] {
            let truth: f64 = (0..calls).map(call).sum();
            let run = |_| estimate(calls, call, |_| Sampling::share(share));
            let runs: Vec<Estimate> = (0..200).map(run).collect();
            let square = runs.iter().map(|run| (run.total_ns - truth).powi(2)).sum::<f64>();
            let scatter = (square / runs.len() as f64).sqrt();
            let error =
                runs.iter().map(|run| run.error_ns().unwrap()).sum::<f64>() / runs.len() as f64;
            // The scatter of 200 runs has a standard error of 5 %: allow six.
            assert!((scatter / error - 1.0).abs() < 0.3, "{share}: {scatter} {error}");
        }
    }

    #[test]
    fn equal_times_are_estimated_without_error() {
        let drawn = estimate(100_000, |_| 4_096.0, |_| Sampling::share(0.1));
        assert!((drawn.total_ns - 100_000.0 * 4_096.0).abs() < 1.0, "{drawn:?}");
        assert!(drawn.error_ns().unwrap() < 100.0, "{drawn:?}");
    }

    /// Calls that occur once in 1,000 may be missing from the samples.
    #[test]
    fn few_samples_do_not_tell_the_error() {
        let drawn = estimate(100_000, |_| 4_096.0, |_| Sampling::share(0.01));
        assert_eq!(drawn.error_ns(), Err(UnknownError::Few));
        assert_eq!(estimate(100, |_| 4_096.0, |_| Sampling::ALL).error_ns(), Ok(0.0));
    }

    /// The first call of a function is recorded in any case. Alone it says nothing of the error for all calls.
    #[test]
    fn samples_that_stand_for_themselves_do_not_tell_the_error_of_others() {
        let total = |weights: f64, calls: f64| {
            let population = Population { weights, calls, ..Population::default() };
            WeightedSums::default().total(1e3, 0.0, 0.0, population).error_ns()
        };
        assert_eq!([total(1.0, 12.0), total(12.0, 12.0)], [Err(UnknownError::Few), Ok(0.0)]);
    }

    /// Only about ten of the samples are long calls, which make up half of the total.
    #[test]
    fn few_long_samples_do_not_tell_the_error() {
        let call = |i: u64| if i % 1_000 == 999 { 1_000_000.0 } else { 1_000.0 };
        let drawn = estimate(100_000, call, |_| Sampling::share(0.1));
        assert_eq!(drawn.error_ns(), Err(UnknownError::Dominated));
    }
}
