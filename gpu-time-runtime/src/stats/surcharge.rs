//! The surcharge: the host time that CUPTI adds to every launch of a process, from its first recording until the
//! process ends.
//!
//! Nothing takes it back. A program with a budget therefore counts its launches before anything is recorded.

/// Launches are counted in periods of at least `PERIOD_NS` and `LAUNCHES`. A program that loads code for its first calls
/// makes few launches in several seconds.
const PERIOD_NS: f64 = 100e6;
const LAUNCHES: f64 = 1_000.0;
/// The number of fitting periods in a row that permits recording, and the number of all others that refuses it.
const FITTING: u32 = 2;
const TOO_MANY: u32 = 3;
/// The largest part of the budget that the surcharge may take. The rest is for calls.
const PART: f64 = 0.5;
/// The smallest budget that has room for the surcharge of any program.
const AMPLE: f64 = 0.5;

/// The launches of a process, counted to decide whether its budget has room for the surcharge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaunchCensus {
    /// The launches and the time of the current period.
    launches: f64,
    elapsed_ns: f64,
    /// The launches per nanosecond of the last period that has ended.
    rate: f64,
    /// The number of periods in a row whose surcharge fitted, and of all that did not fit.
    fitting: u32,
    too_many: u32,
}

impl LaunchCensus {
    /// Returns `true` if a budget has room for the surcharge of any program, so that no launch need be counted.
    pub fn is_needless(budget: f64) -> bool {
        budget >= AMPLE
    }

    /// Adds the launches of an interval, each with a surcharge of `ns`. Returns `true` if the budget has room for
    /// that, `false` if it has not, and `None` while it is too soon to say.
    pub fn add(&mut self, launches: f64, elapsed_ns: f64, ns: f64, budget: f64) -> Option<bool> {
        self.launches += launches;
        self.elapsed_ns += elapsed_ns;
        if self.elapsed_ns >= PERIOD_NS && self.launches >= LAUNCHES {
            self.rate = self.launches / self.elapsed_ns;
            (self.launches, self.elapsed_ns) = (0.0, 0.0);
            if self.share(ns) <= PART * budget {
                self.fitting = self.fitting.saturating_add(1);
            } else {
                (self.fitting, self.too_many) = (0, self.too_many.saturating_add(1));
            }
        }
        if self.fitting >= FITTING {
            return Some(true);
        }
        (self.too_many >= TOO_MANY && self.fitting == 0).then_some(false)
    }

    /// Begins again with the first period.
    pub fn restart(&mut self) {
        *self = LaunchCensus { rate: self.rate, ..LaunchCensus::default() };
    }

    /// Returns the fraction of wall time that a surcharge of `ns` per launch takes, in the last period.
    pub fn share(&self, ns: f64) -> f64 {
        self.rate * ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    const BUDGET: f64 = 0.01;
    /// Milliseconds, and the number of launches in each of them.
    const OFTEN: (f64, f64) = (110.0, 13.0);
    const SELDOM: (f64, f64) = (110.0, 12.0);

    /// Returns the verdict after each interval.
    fn verdicts(intervals: &[(f64, f64)]) -> Vec<Option<bool>> {
        let mut census = LaunchCensus::default();
        let verdict =
            |(ms, launches): &(f64, f64)| census.add(ms * launches, ms * MS, 400.0, BUDGET);
        intervals.iter().map(verdict).collect()
    }

    #[test]
    fn seldom_launches_fit() {
        assert_eq!(verdicts(&[(99.0, 12.0), (99.0, 12.0), SELDOM]), [None, None, Some(true)]);
        assert_eq!(verdicts(&[(10_000.0, 0.09); 4]), [None, None, None, Some(true)]);
    }

    #[test]
    fn frequent_launches_are_refused_only_if_they_go_on() {
        assert_eq!(verdicts(&[OFTEN; 3]), [None, None, Some(false)]);
        assert_eq!(verdicts(&[OFTEN, OFTEN, SELDOM, SELDOM]), [None, None, None, Some(true)]);
        let now_and_then = [OFTEN, SELDOM, OFTEN, SELDOM, OFTEN];
        assert_eq!(verdicts(&now_and_then), [None, None, None, None, Some(false)]);
    }

    /// The first calls may load code for seconds.
    #[test]
    fn slow_first_calls_are_not_taken_for_the_rest() {
        let slow = [(30.0, 0.0), (2_300.0, 0.0), (1_300.0, 0.0), (8_400.0, 0.002)];
        let intervals = [&slow[..], &[OFTEN; 4]].concat();
        assert_eq!(verdicts(&intervals).last(), Some(&Some(false)));
        assert!(verdicts(&intervals).iter().rev().skip(1).all(Option::is_none));
    }

    #[test]
    fn share_is_that_of_the_last_period() {
        let mut census = LaunchCensus::default();
        assert_eq!(census.share(400.0), 0.0);
        census.add(100_000.0, 500.0 * MS, 400.0, BUDGET);
        census.add(7.0, MS, 400.0, BUDGET);
        assert_eq!(census.share(400.0), 0.08);
    }
}
