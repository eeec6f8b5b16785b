//! What timing adds to calls, by experiment.
//!
//! Of the calls that sampling chooses, some are left alone at random: nothing in them is timed, and only the host's
//! clock is read. Chance alone tells them from the others, so the difference of the mean times is what timing adds,
//! wherever it comes from. Compared are whole calls, outermost ones where they are short: see
//! [`trial`](crate::record::trial).

use gpu_time_report::Moments;

/// The share of the chosen calls that is left alone.
pub(crate) const LEFT_ALONE: f64 = 0.25;
/// The number of calls that chosen ones represent for each one that is timed.
pub(crate) const WEIGHT: f64 = 1.0 / (1.0 - LEFT_ALONE);
/// The fewest calls of which anything is concluded.
const FEWEST: u64 = 8;
/// The number of calls over which their mean time is taken.
const RECENT: u64 = 256;
/// The longest mean time of calls that are left alone as a whole.
const LONGEST_NS: f64 = 100e6;
/// The mean time of calls that take long enough to have a place on the stack, and their time read, each time.
pub(crate) const LONG_NS: f64 = 20e3;

/// The times of a function's calls on the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect {
    /// The mean time from the beginning to the end of recent calls, whatever was timed in them, and the number of calls
    /// so far.
    whole_ns: f64,
    whole: u64,
    /// From the moment of the draw to the end, of the calls that were timed, and of those that were left alone.
    timed: Moments,
    left_alone: Moments,
}

/// A time with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Added {
    pub ns: f64,
    pub error_ns: f64,
}

impl Effect {
    pub const fn new() -> Effect {
        Effect { whole_ns: 0.0, whole: 0, timed: Moments::new(), left_alone: Moments::new() }
    }

    pub fn add_whole(&mut self, ns: f64) {
        self.whole += 1;
        self.whole_ns += (ns - self.whole_ns) / self.whole.min(RECENT) as f64;
    }

    pub fn add_drawn(&mut self, is_timed: bool, ns: f64) {
        if is_timed { &mut self.timed } else { &mut self.left_alone }.record(ns);
    }

    /// Returns the mean time of recent calls, once it is known.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.whole >= FEWEST).then_some(self.whole_ns)
    }

    /// Returns `true` if calls are short enough, and frequent enough, to be compared as a whole.
    pub fn is_unit(&self) -> bool {
        self.mean_ns().is_some_and(|ns| ns <= LONGEST_NS)
    }

    /// Returns the time that timing has added to all calls, once it is known.
    pub fn added(&self) -> Option<Added> {
        let Effect { timed, left_alone, .. } = self;
        (timed.count().min(left_alone.count()) >= FEWEST).then(|| {
            let of_mean = |times: &Moments| times.stddev().powi(2) / times.count() as f64;
            let count = timed.count() as f64;
            Added {
                ns: count * (mean(timed) - mean(left_alone)),
                error_ns: count * (of_mean(timed) + of_mean(left_alone)).sqrt(),
            }
        })
    }
}

impl Added {
    pub fn and(self, other: Added) -> Added {
        Added { ns: self.ns + other.ns, error_ns: self.error_ns.hypot(other.error_ns) }
    }
}

fn mean(times: &Moments) -> f64 {
    times.sum() / times.count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Times scatter ten times as far as what is added to them.
    #[test]
    fn added_time_is_within_twice_its_error_in_19_of_20() {
        const RUNS: u32 = 400;
        let mut rng = Rng::with_seed(11);
        let mut within = 0;
        for _ in 0..RUNS {
            let mut effect = Effect::new();
            let mut timed = 0.0;
            for _ in 0..2_000 {
                let ns = 300_000.0 - 100_000.0 * rng.f64().ln();
                let is_timed = rng.f64() >= LEFT_ALONE;
                timed += f64::from(u8::from(is_timed));
                effect.add_drawn(is_timed, ns + if is_timed { 10_000.0 } else { 0.0 });
            }
            let Added { ns, error_ns } = effect.added().unwrap();
            assert!(error_ns < 10_000.0 * timed, "{ns} {error_ns}");
            within += u32::from((ns - 10_000.0 * timed).abs() <= 2.0 * error_ns);
        }
        assert!((368..=396).contains(&within), "{within} of {RUNS}");
    }

    #[test]
    fn few_or_long_calls_tell_nothing() {
        let mut effect = Effect::new();
        (1..FEWEST).for_each(|_| effect.add_whole(1e3));
        assert!(!effect.is_unit() && effect.added().is_none());
        effect.add_whole(1e3);
        assert!(effect.is_unit());
        effect.add_whole(1e9);
        assert!(!effect.is_unit());
        (0..10 * RECENT).for_each(|_| effect.add_whole(1e3));
        assert!(effect.is_unit(), "they have become short");
        (0..FEWEST).for_each(|_| effect.add_drawn(true, 1e3));
        assert_eq!(effect.added(), None);
    }
}
