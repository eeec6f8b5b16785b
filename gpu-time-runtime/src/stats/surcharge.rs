//! The surcharge: the host time that CUPTI adds to every launch of a process, from its first recording until the
//! process ends.
//!
//! Nothing takes it back. A program with a budget therefore counts its launches before anything is recorded.

/// The time for which launches are counted before a verdict, and the time after which a program that still
/// makes too many is refused. Many programs launch most while they start.
const SHORTEST_NS: f64 = 200e6;
const LONGEST_NS: f64 = 2e9;
/// The largest part of the budget that the surcharge may take. The rest is for calls.
const PART: f64 = 0.5;
/// The smallest budget that has room for the surcharge of any program.
const AMPLE: f64 = 0.5;

/// The launches of a process, counted to decide whether its budget has room for the surcharge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaunchCensus {
    launches: f64,
    elapsed_ns: f64,
}

impl LaunchCensus {
    /// Returns `true` if a budget has room for the surcharge of any program, so that no launch need be counted.
    pub fn is_needless(budget: f64) -> bool {
        budget >= AMPLE
    }

    /// Adds the launches of an interval.
    pub fn add(&mut self, launches: f64, elapsed_ns: f64) {
        self.launches += launches;
        self.elapsed_ns += elapsed_ns;
    }

    /// Returns the fraction of wall time that a surcharge of `ns` per launch takes.
    pub fn share(&self, ns: f64) -> f64 {
        if self.elapsed_ns > 0.0 { self.launches * ns / self.elapsed_ns } else { 0.0 }
    }

    /// Returns `true` if the budget has room for this fraction of wall time, `false` if it has not, and `None`
    /// while it is too soon to say.
    pub fn verdict(&self, share: f64, budget: f64) -> Option<bool> {
        let fits = share <= PART * budget;
        let least_ns = if fits { SHORTEST_NS } else { LONGEST_NS };
        (self.elapsed_ns >= least_ns).then_some(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    const BUDGET: f64 = 0.01;

    /// Returns the verdict after the given milliseconds, each with this many launches that take 400 ns more.
    fn verdict(ms: f64, launches_per_ms: f64) -> Option<bool> {
        let mut census = LaunchCensus::default();
        census.add(ms * launches_per_ms, ms * MS);
        census.verdict(census.share(400.0), BUDGET)
    }

    #[test]
    fn rare_launches_fit_after_a_short_time() {
        assert_eq!(verdict(199.0, 12.0), None);
        assert_eq!(verdict(201.0, 12.0), Some(true));
    }

    #[test]
    fn frequent_launches_are_refused_only_if_they_go_on() {
        assert_eq!(verdict(1_999.0, 13.0), None);
        assert_eq!(verdict(2_001.0, 13.0), Some(false));
        let mut census = LaunchCensus::default();
        census.add(100_000.0, 500.0 * MS);
        assert_eq!(census.verdict(census.share(40.0), BUDGET), None);
        census.add(0.0, 400.0 * MS);
        assert_eq!(census.verdict(census.share(40.0), BUDGET), Some(true));
    }

    #[test]
    fn share_is_of_all_time_so_far() {
        let mut census = LaunchCensus::default();
        assert_eq!(census.share(400.0), 0.0);
        census.add(100.0, MS);
        census.add(0.0, MS);
        assert_eq!(census.share(400.0), 0.02);
    }
}
