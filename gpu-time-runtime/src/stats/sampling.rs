//! Random and counted sampling of calls.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use fastrand::Rng;

use crate::base::random::generator;
use crate::stats::since::impl_since;
use crate::types::sampling::Sampling;

/// The gap before the next timed call.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gap {
    /// The number of calls to skip.
    skips: u64,
    /// The number of calls that the timed one represents.
    weight: f32,
}

/// Draws the gap before the next timed call. `rest` is the number of calls left in a counted gap
/// that is in progress.
fn next_gap(sampling: Sampling, rest: u64, rng: &mut Rng) -> Gap {
    if sampling.get() == 0.0 {
        return Gap { skips: u64::MAX, weight: 0.0 };
    }
    if sampling.is_counted() {
        let skips = if rest > 0 { rest } else { sampling.get() as u64 - 1 };
        return Gap { skips, weight: sampling.get() as f32 };
    }
    // The inverse of the weight after rounding to `f32`, so that the weight is exact.
    let weight = sampling.get().recip() as f32;
    let share = f64::from(weight).recip();
    // Uniform in (0, 1].
    let uniform = 1.0 - rng.f64();
    // Inversion of the geometric distribution: the largest number of consecutive failures that is
    // at least as likely as `uniform`. A share of 1 gives 0.
    let skips = if share >= 1.0 { 0.0 } else { uniform.ln() / (-share).ln_1p() };
    Gap { skips: skips as u64, weight }
}

/// A site's current sampling.
pub(crate) struct CurrentRate {
    sampling: AtomicU64,
    epoch: AtomicU32,
}

/// Threads redraw their pending gaps if the rate rises by more than this factor.
const REDRAW_FACTOR: f64 = 2.0;

impl CurrentRate {
    pub const fn new() -> Self {
        CurrentRate { sampling: AtomicU64::new(Sampling::ALL.to_bits()), epoch: AtomicU32::new(0) }
    }

    pub fn get(&self) -> Sampling {
        Sampling::from_bits(self.sampling.load(Relaxed))
    }

    pub fn set(&self, sampling: Sampling) {
        let before = self.get();
        self.sampling.store(sampling.to_bits(), Relaxed);
        if sampling.rate() > REDRAW_FACTOR * before.rate() {
            self.renew();
        }
    }

    /// Makes every thread redraw its pending gap.
    pub fn renew(&self) {
        self.epoch.fetch_add(1, Relaxed);
    }

    /// Returns the current epoch, which is incremented on request and when the rate rises sharply,
    /// to make threads redraw. Draws are independent, so discarding a gap introduces no bias.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }
}

/// Sums over the calls that the sampler has decided about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Population {
    /// The number of calls.
    pub calls: f64,
    /// The sum of the sampled calls' weights. Its expected value is the number of calls.
    pub weights: f64,
    /// The sum of `weight × (weight − 1)` over the sampled calls, which estimates the variance of
    /// `weights`.
    pub variance: f64,
    /// The number of calls is unknown, and `calls` is its estimate.
    pub is_estimated: bool,
}

impl_since!(Population { calls, weights, variance; keep is_estimated });

impl Population {
    /// Estimates the number of calls from the sampled ones, because it is unknown.
    pub fn estimate_calls(&mut self) {
        (self.calls, self.is_estimated) = (self.weights, true);
    }

    /// Returns the ratio of the number of calls to its estimate, by which estimated totals are multiplied.
    pub fn scale(&self) -> f64 {
        if self.weights > 0.0 { self.calls / self.weights } else { 1.0 }
    }

    /// Adds another thread's sums.
    pub fn add(&mut self, other: Population) {
        self.calls += other.calls;
        self.weights += other.weights;
        self.variance += other.variance;
    }

    /// Adds calls that were timed without asking the sampler.
    pub fn add_unasked(&mut self, calls: u64) {
        self.calls += calls as f64;
        self.weights += calls as f64;
    }
}

/// Selects which of one site's calls on one thread are timed.
///
/// Invariant: only one thread draws. Other threads read the sums, each of which is atomic by
/// itself.
#[derive(Default)]
pub(crate) struct Sampler {
    /// The state of the random generator; 0 before the first draw.
    rng: AtomicU64,
    /// The weight of the call at the end of the gap, as the bits of an `f32`; 0 if that call is
    /// undecided.
    due: AtomicU64,
    /// The part of a counted gap beyond the longest allowed gap.
    rest: AtomicU64,
    sampled: AtomicU64,
    weights: AtomicU64,
    variance: AtomicU64,
}

/// A decision about the call at the end of a gap.
pub(crate) struct Draw {
    /// The weight of the call if it is timed.
    pub weight: Option<f32>,
    /// The number of calls to skip next without asking.
    pub skips: u64,
}

impl Sampler {
    /// Creates a sampler that draws the same sequence in every run.
    #[cfg(test)]
    pub fn seeded(seed: u64) -> Self {
        Sampler { rng: AtomicU64::new(seed), ..Sampler::default() }
    }

    /// Decides about the call at the end of a gap, and about at most `longest` calls that follow it.
    ///
    /// A call selected at an earlier rate is timed with the weight for that rate. A gap longer than
    /// `longest` is cut short, and the call at its end is decided again. This is valid because the
    /// geometric distribution is memoryless.
    pub fn draw(&self, sampling: Sampling, longest: u64) -> Draw {
        let mut rng = generator(self.rng.load(Relaxed));
        let due = f32::from_bits(self.due.load(Relaxed) as u32);
        let (weight, gap) = if due > 0.0 {
            (Some(due), next_gap(sampling, 0, &mut rng))
        } else {
            let gap = next_gap(sampling, self.rest.load(Relaxed), &mut rng);
            match gap.skips.checked_sub(1) {
                None => (Some(gap.weight), next_gap(sampling, 0, &mut rng)),
                Some(skips) => (None, Gap { skips, ..gap }),
            }
        };
        let rest = if sampling.is_counted() { gap.skips.saturating_sub(longest) } else { 0 };
        let is_cut = rest > 0 || (!sampling.is_counted() && gap.skips >= longest);
        let due = if is_cut { 0.0 } else { gap.weight };
        self.rng.store(rng.get_seed(), Relaxed);
        self.rest.store(rest, Relaxed);
        self.due.store(u64::from(due.to_bits()), Relaxed);
        if let Some(weight) = weight {
            self.count(f64::from(weight));
        }
        Draw { weight, skips: gap.skips.min(longest) }
    }

    /// Discards the decision about the last `left` calls of the gap.
    pub fn cut(&self, left: u64) {
        self.rest.store(self.rest.load(Relaxed) + left, Relaxed);
        self.due.store(0, Relaxed);
    }

    /// Counts a sampled call with this weight.
    pub fn count(&self, weight: f64) {
        self.sampled.store(self.sampled.load(Relaxed) + 1, Relaxed);
        add(&self.weights, weight);
        add(&self.variance, weight * (weight - 1.0));
    }

    /// Changes the weight of a sampled call that has been counted.
    pub fn reweigh(&self, from: f64, to: f64) {
        add(&self.weights, to - from);
        add(&self.variance, to * (to - 1.0) - from * (from - 1.0));
    }

    /// Takes back a sampled call that has been counted with this weight, because it is not timed after all.
    pub fn take_back(&self, weight: f64) {
        self.sampled.store(self.sampled.load(Relaxed).saturating_sub(1), Relaxed);
        self.reweigh(weight, 0.0);
    }

    /// Returns the number of sampled calls.
    pub fn sampled(&self) -> u64 {
        self.sampled.load(Relaxed)
    }

    /// Returns the sums so far, including `unsampled` calls that were not sampled.
    pub fn population(&self, unsampled: u64) -> Population {
        let number = |bits: &AtomicU64| f64::from_bits(bits.load(Relaxed));
        Population {
            calls: (unsampled + self.sampled()) as f64,
            weights: number(&self.weights),
            variance: number(&self.variance),
            is_estimated: false,
        }
    }
}

fn add(sum: &AtomicU64, more: f64) {
    sum.store((f64::from_bits(sum.load(Relaxed)) + more).to_bits(), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use proptest::prelude::*;

    /// Makes calls and returns, for each of them, its weight if it is timed.
    fn sampled(
        sampler: &Sampler,
        sampling: Sampling,
        longest: u64,
        calls: u64,
    ) -> Vec<Option<f32>> {
        let mut skips = 0;
        let call = |_| {
            if skips > 0 {
                skips -= 1;
                return None;
            }
            let drawn = sampler.draw(sampling, longest);
            skips = drawn.skips;
            drawn.weight
        };
        (0..calls).map(call).collect()
    }

    fn seeded(seed: u64) -> Sampler {
        Sampler::seeded(seed)
    }

    #[test]
    fn share_of_one_or_zero_times_all_or_none() {
        assert_eq!(sampled(&seeded(1), Sampling::ALL, 64, 100), [Some(1.0); 100]);
        assert_eq!(sampled(&seeded(1), Sampling::of_share(0.0).unwrap(), 64, 100), [None; 100]);
    }

    /// Covers a draw of exactly 1, whose logarithm is 0.
    #[test]
    fn zero_share_never_samples() {
        let none = Sampling::of_share(0.0).unwrap();
        assert!(
            (0..1_000).all(|seed| next_gap(none, 0, &mut Rng::with_seed(seed)).skips == u64::MAX)
        );
        assert_eq!(
            next_gap(Sampling::of_share(-0.0).unwrap(), 0, &mut Rng::with_seed(1)).weight,
            0.0
        );
    }

    #[test]
    fn global_generator_is_not_used() {
        let drawn = || {
            fastrand::seed(7);
            let draws: Vec<u64> = (0..20)
                .map(|_| Sampler::default().draw(Sampling::share(1e-6), 1 << 40).skips)
                .collect();
            (draws, fastrand::u64(..))
        };
        let (one, other) = (drawn(), std::thread::spawn(drawn).join().unwrap());
        assert_ne!(one.0, other.0);
        fastrand::seed(7);
        assert_eq!([one.1, other.1], [fastrand::u64(..); 2]);
    }

    #[test]
    fn count_continues_over_cut_gaps() {
        for longest in 1..12 {
            let calls = sampled(&seeded(1), Sampling::every(7), longest, 100);
            let timed: Vec<_> = (1..).zip(&calls).filter(|(_, weight)| weight.is_some()).collect();
            let sevenths: Vec<_> = (7..=100).step_by(7).map(|nth| (nth, &Some(7.0))).collect();
            assert_eq!(timed, sevenths, "{longest}");
        }
    }

    #[test]
    fn share_of_calls_is_timed() {
        for (share, longest) in [(0.9, 64), (0.5, 1), (0.01, 64), (0.01, 4096), (0.001, 100)] {
            let calls = (100_000.0 / share) as u64;
            let weights = sampled(&seeded(7), Sampling::share(share), longest, calls);
            let off = weights.iter().flatten().count() as f64 - 100_000.0;
            // The seed is fixed, so the outcome is deterministic.
            assert!(off.abs() < 4.0 * (100_000.0 * (1.0 - share)).sqrt(), "{share}: {off}");
        }
    }

    #[test]
    fn calls_are_drawn_independently() {
        for longest in [1, 2, 3, 4096] {
            let calls = sampled(&seeded(3), Sampling::share(0.25), longest, 400_000);
            let mut pairs = [[0u32; 2]; 2];
            for pair in calls.windows(2) {
                pairs[usize::from(pair[0].is_some())][usize::from(pair[1].is_some())] += 1;
            }
            let share = |[no, yes]: [u32; 2]| f64::from(yes) / f64::from(no + yes);
            assert!((share(pairs[0]) - 0.25).abs() < 0.005, "{longest}: {pairs:?}");
            assert!((share(pairs[1]) - 0.25).abs() < 0.005, "{longest}: {pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn weights_add_up_to_calls_at_changing_rates(
            shares in prop::collection::vec(0.02f64..=1.0, 1..30),
            seed in 1u64..,
            longest in 1u64..100,
        ) {
            let sampler = seeded(seed);
            let (mut calls, mut skips, mut unsampled) = (0u64, 0, 0);
            for call in 0..30_000usize {
                calls += 1;
                if skips > 0 {
                    skips -= 1;
                    unsampled += 1;
                    continue;
                }
                let share = shares[call / 100 % shares.len()];
                let drawn = sampler.draw(Sampling::share(share), longest);
                unsampled += u64::from(drawn.weight.is_none());
                skips = drawn.skips;
            }
            let population = sampler.population(unsampled);
            prop_assert_eq!(population.calls, calls as f64);
            // Eight standard errors; a weight is at most 50.
            let error = population.variance.sqrt();
            prop_assert!((population.weights - calls as f64).abs() <= 8.0 * error + 50.0);
        }
    }
}
