//! Totals that are upper bounds because of starved samples.

/// The maximum part of a total that may be waits of the GPU without a mark.
const FEW: f64 = 0.05;
/// The maximum ratio of the mean starved sample to the mean fed one at which the starved ones are
/// other work, whose waits the fed ones do not tell.
const SHORTER: f64 = 0.8;

/// A number of samples, and the sum of their times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleSum {
    pub samples: f64,
    pub ns: f64,
}

impl SampleSum {
    /// Adds another sum.
    pub fn add(&mut self, other: SampleSum) {
        self.samples += other.samples;
        self.ns += other.ns;
    }

    /// Returns the mean time, or `None` without samples.
    pub fn mean_ns(self) -> Option<f64> {
        (self.samples > 0.0).then(|| self.ns / self.samples)
    }
}

/// Returns `true` if the total of these samples is an upper bound because of the starved ones: there is no fed one,
/// or the total is more than 5 % above what it would be if the starved ones took as long as the fed ones. Starved
/// samples that are clearly shorter than fed ones are other work, all of which may be waits.
pub fn make_bound(fed: SampleSum, starved: SampleSum) -> bool {
    if starved.samples <= 0.0 || fed.samples <= 0.0 {
        return starved.samples > 0.0;
    }
    let as_fed_ns = fed.ns / fed.samples * starved.samples;
    let is_other_work = starved.ns < SHORTER * as_fed_ns;
    let waits_ns = if is_other_work { starved.ns } else { starved.ns - as_fed_ns };
    waits_ns > FEW * (fed.ns + starved.ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starved_samples_count_for_what_they_take_longer() {
        let sum = |samples, ns| SampleSum { samples, ns };
        let none = SampleSum::default();
        assert!(make_bound(none, sum(1.0, 1.0)) && !make_bound(sum(1.0, 1.0), none));
        // As long as the fed ones, however many there are.
        assert!(!make_bound(sum(1.0, 100.0), sum(99.0, 9_900.0)));
        // One in ten takes 1.4 or 1.7 times as long, which adds 4 or 7 %.
        assert!(!make_bound(sum(9.0, 900.0), sum(1.0, 140.0)));
        assert!(make_bound(sum(9.0, 900.0), sum(1.0, 170.0)));
    }

    /// One function with long calls, which are fed, and many short ones.
    #[test]
    fn shorter_starved_samples_may_be_all_waits() {
        let sum = |samples, ns| SampleSum { samples, ns };
        assert!(make_bound(sum(10.0, 100e6), sum(90.0, 27e6)));
        // They are less than 5 % of the total.
        assert!(!make_bound(sum(10.0, 100e6), sum(10.0, 3e6)));
        // The spread of the same work.
        assert!(!make_bound(sum(10.0, 100e6), sum(90.0, 765e6)));
    }
}
