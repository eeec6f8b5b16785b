//! What all calls took, by those that were sampled: pure.
//!
//! A call that was timed with probability 1/w stands for w calls: the sum of weight × time has the true
//! total as its expectation, whatever the calls do and however the probability changes meanwhile
//! (Horvitz and Thompson). The number of calls is known exactly, and the sum of the weights estimates
//! that too; so the total is scaled by how far that one is off (Hájek). Then calls that all take the same
//! are estimated without error, and the bias that this brings dies away as one over the samples.

use crate::stats::sampling::Population;
use crate::types::sample::Sample;

/// What samples stand for beside themselves: calls that nobody timed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unseen {
    /// Σ (weight − 1) × time, and × brackets.
    ns: f64,
    brackets: f64,
    /// Σ v, Σ v × time and Σ v × time², with v = weight × (weight − 1).
    v: f64,
    v_ns: f64,
    v_ns2: f64,
}

/// A total with its standard error, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub total_ns: f64,
    pub error_ns: f64,
}

impl Unseen {
    /// Takes in a sample that stands for more than itself.
    #[cold]
    pub fn record(&mut self, sample: Sample) {
        let (weight, ns) = (f64::from(sample.weight), sample.raw_ns());
        let v = weight * (weight - 1.0);
        self.ns += (weight - 1.0) * ns;
        self.brackets += (weight - 1.0) * f64::from(sample.brackets);
        self.v += v;
        self.v_ns += v * ns;
        self.v_ns2 += v * ns * ns;
    }

    /// What was recorded since an earlier one of the same series.
    pub fn since(self, earlier: Unseen) -> Unseen {
        Unseen {
            ns: self.ns - earlier.ns,
            brackets: self.brackets - earlier.brackets,
            v: self.v - earlier.v,
            v_ns: self.v_ns - earlier.v_ns,
            v_ns2: self.v_ns2 - earlier.v_ns2,
        }
    }

    /// The total of a series whose samples add up to `seen_ns`, less `bias_ns` for each of their
    /// `brackets`, as a sample has them in the mean.
    pub fn total(
        self,
        seen_ns: f64,
        bias_ns: f64,
        brackets: f64,
        population: Population,
    ) -> Estimate {
        let Population { calls, weights, variance } = population;
        let ns = seen_ns + (self.ns - bias_ns * self.brackets).max(0.0);
        let scale = if weights > 0.0 { calls / weights } else { 1.0 };
        // Calls that are not in this series count with no time.
        let mean = if weights > 0.0 { ns / weights } else { 0.0 };
        let bias = bias_ns * brackets;
        let v_ns = self.v_ns - bias * self.v;
        let v_ns2 = self.v_ns2 - 2.0 * bias * self.v_ns + bias * bias * self.v;
        let squares = v_ns2 - 2.0 * mean * v_ns + mean * mean * variance;
        // What was seen is certain.
        let total_ns = (ns * scale).max(seen_ns);
        Estimate { total_ns, error_ns: scale * squares.max(0.0).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sampling::Sampler;
    use crate::types::sampling::Sampling;

    /// The estimate of calls whose times `call` gives, sampled at a pace that `sampling` gives.
    fn estimate(
        calls: u64,
        call: impl Fn(u64) -> f64,
        sampling: impl Fn(u64) -> Sampling,
    ) -> Estimate {
        let (sampler, mut unseen, mut seen_ns) = (Sampler::new(), Unseen::default(), 0.0);
        let (mut skips, mut unsampled) = (0, 0);
        for i in 0..calls {
            if skips == 0 {
                let drawn = sampler.draw(sampling(i), 64);
                skips = drawn.skips;
                match drawn.weight {
                    None => unsampled += 1,
                    Some(weight) => {
                        let sample = Sample::new(call(i)).unwrap().weighted(weight);
                        seen_ns += sample.raw_ns();
                        unseen.record(sample);
                    }
                }
            } else {
                skips -= 1;
                unsampled += 1;
            }
        }
        unseen.total(seen_ns, 0.0, 1.0, sampler.population(unsampled))
    }

    const CALLS: u64 = 200_000;

    /// Every hundredth call is a slow one.
    fn periodic(i: u64) -> f64 {
        if i % 100 == 99 { 101_000.0 } else { 1_000.0 }
    }

    #[test]
    fn a_count_that_keeps_step_misjudges_and_a_share_does_not() {
        let truth = CALLS as f64 * 2_000.0;
        let counted = estimate(CALLS, periodic, |_| Sampling::every(100));
        assert_eq!(counted.total_ns, CALLS as f64 * 101_000.0);
        let drawn = estimate(CALLS, periodic, |_| Sampling::share(0.01));
        // Seven standard errors: one run in 10¹¹.
        assert!((drawn.total_ns - truth).abs() < 7.0 * drawn.error_ns, "{drawn:?}");
        assert!(drawn.error_ns < 0.5 * truth, "{drawn:?}");
    }

    /// Slow calls come while few are sampled, so that the mean of the samples is far off.
    #[test]
    fn a_pace_that_follows_the_load_does_not_tilt_the_total() {
        let is_slow = |i: u64| i / 20_000 % 2 == 1;
        let call = |i| if is_slow(i) { 50_000.0 } else { 1_000.0 };
        let share = |i| Sampling::share(if is_slow(i) { 0.01 } else { 0.5 });
        let truth = CALLS as f64 * 25_500.0;
        let drawn = estimate(CALLS, call, share);
        assert!((drawn.total_ns - truth).abs() < 7.0 * drawn.error_ns, "{drawn:?}");
        assert!(drawn.error_ns < 0.1 * truth, "{drawn:?}");
    }

    /// The error is what the estimates really scatter by.
    #[test]
    fn the_error_is_the_scatter_of_many_runs() {
        let call = |i: u64| ((i * 7919) % 1_000) as f64;
        let truth: f64 = (0..20_000).map(call).sum();
        for share in [0.02, 0.5] {
            let run = |_| estimate(20_000, call, |_| Sampling::share(share));
            let runs: Vec<Estimate> = (0..200).map(run).collect();
            let square = runs.iter().map(|run| (run.total_ns - truth).powi(2)).sum::<f64>();
            let scatter = (square / runs.len() as f64).sqrt();
            let error = runs.iter().map(|run| run.error_ns).sum::<f64>() / runs.len() as f64;
            // The scatter of 200 runs is known to 5 %: six times that.
            assert!((scatter / error - 1.0).abs() < 0.3, "{share}: {scatter} {error}");
        }
    }

    #[test]
    fn calls_that_take_the_same_are_estimated_without_error() {
        let drawn = estimate(100_000, |_| 4_096.0, |_| Sampling::share(0.01));
        assert!((drawn.total_ns - 100_000.0 * 4_096.0).abs() < 1.0, "{drawn:?}");
        assert!(drawn.error_ns < 100.0, "{drawn:?}");
    }
}
