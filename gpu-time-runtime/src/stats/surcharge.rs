//! The surcharge: the host time that CUPTI adds to every launch of a process, from its first recording until the
//! process ends.
//!
//! Nothing takes it back. A program with a budget therefore counts its launches before anything is recorded.

/// The shortest time over which launches are counted for one figure.
const PERIOD_NS: f64 = 500e6;
/// The number of periods after which a program that still makes too many launches is refused. The first one never
/// counts: while a program loads code for its first launches, it makes few of them.
const PERIODS: u32 = 4;
/// The largest part of the budget that the surcharge may take. The rest is for calls.
const PART: f64 = 0.5;
/// The smallest budget that has room for the surcharge of any program.
const AMPLE: f64 = 0.5;

/// The launches of a process, counted to decide whether its budget has room for the surcharge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaunchCensus {
    /// The number of periods that have ended.
    periods: u32,
    /// The launches and the time of the current period.
    launches: f64,
    elapsed_ns: f64,
    /// The launches per nanosecond of the last period that has ended.
    rate: f64,
}

impl LaunchCensus {
    /// Returns `true` if a budget has room for the surcharge of any program, so that no launch need be counted.
    pub fn is_needless(budget: f64) -> bool {
        budget >= AMPLE
    }

    /// Adds the launches of an interval, which ends with a call. Returns `true` if a period ends with it.
    pub fn add(&mut self, launches: f64, elapsed_ns: f64) -> bool {
        self.launches += launches;
        self.elapsed_ns += elapsed_ns;
        let ends = self.elapsed_ns >= PERIOD_NS;
        if ends {
            *self = LaunchCensus {
                periods: self.periods.saturating_add(1),
                rate: self.launches / self.elapsed_ns,
                ..LaunchCensus::default()
            };
        }
        ends
    }

    /// Returns the fraction of wall time that a surcharge of `ns` per launch takes, in the last period.
    pub fn share(&self, ns: f64) -> f64 {
        self.rate * ns
    }

    /// Returns `true` if the budget has room for this fraction of wall time, `false` if it has not, and `None`
    /// while it is too soon to say.
    pub fn verdict(&self, share: f64, budget: f64) -> Option<bool> {
        let fits = share <= PART * budget;
        let fewest = if fits { 2 } else { PERIODS };
        (self.periods >= fewest).then_some(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    const BUDGET: f64 = 0.01;

    /// Returns the verdict after each of these numbers of milliseconds, with this many launches in each of them.
    fn verdicts(intervals: &[(f64, f64)]) -> Vec<Option<bool>> {
        let mut census = LaunchCensus::default();
        let verdict = |(ms, launches): &(f64, f64)| {
            census.add(ms * launches, ms * MS);
            census.verdict(census.share(400.0), BUDGET)
        };
        intervals.iter().map(verdict).collect()
    }

    #[test]
    fn seldom_launches_fit() {
        assert_eq!(verdicts(&[(499.0, 12.0), (2.0, 12.0)]), [None, None]);
        assert_eq!(verdicts(&[(600.0, 12.0), (600.0, 12.0)]), [None, Some(true)]);
    }

    #[test]
    fn frequent_launches_are_refused_only_if_they_go_on() {
        let often = (600.0, 13.0);
        assert_eq!(verdicts(&[often; 4]), [None, None, None, Some(false)]);
        let with_a_pause = [often, often, (600.0, 1.0)];
        assert_eq!(verdicts(&with_a_pause), [None, None, Some(true)]);
    }

    /// A first call may load code for seconds.
    #[test]
    fn slow_first_call_does_not_count() {
        let slow_at_first = [(5_000.0, 0.01), (600.0, 130.0), (600.0, 130.0), (600.0, 130.0)];
        assert_eq!(verdicts(&slow_at_first), [None, None, None, Some(false)]);
    }

    #[test]
    fn share_is_that_of_the_last_period() {
        let mut census = LaunchCensus::default();
        assert_eq!(census.share(400.0), 0.0);
        assert!(census.add(100_000.0, 500.0 * MS));
        assert!(!census.add(7.0, MS));
        assert_eq!(census.share(400.0), 0.08);
    }
}
