//! One measurement, or the reason why there is none.

use std::time::Duration;

pub use gpu_time_report::{CacheState, Losses, Lost, Measure};

/// What one bracket, one call's sum, or one call timed by the host clock gave.
///
/// Invariant: the time is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    raw_ns: f64,
    /// The host's time at its end, which says when it was: of the stop record, for a sum of the last, or
    /// of the reading of a node.
    pub at_ns: u64,
    /// How many brackets it adds up: 1, or for a sum the number of launches that the call made.
    pub brackets: u32,
    /// How many calls it stands for.
    pub weight: f32,
    /// The GPU cannot have waited for the CPU inside it. A sample of the host clock is always fed.
    pub fed: bool,
    /// Much was queued behind it when the GPU passed it, which adds to what its events say.
    pub queued: bool,
    /// Nothing ran inside.
    pub at_floor: bool,
    /// Another timed bracket lay inside.
    pub nested: bool,
    /// The bracket also held waits and records that cudarc's event tracking enqueued.
    pub tracked: bool,
}

impl Sample {
    /// A starved sample of one bracket without marks, or `None` if `raw_ns` is no time.
    pub fn new(raw_ns: f64) -> Option<Sample> {
        (raw_ns.is_finite() && raw_ns >= 0.0).then_some(Sample::of(raw_ns))
    }

    const fn of(raw_ns: f64) -> Sample {
        Sample {
            raw_ns,
            at_ns: 0,
            brackets: 1,
            weight: 1.0,
            fed: false,
            queued: false,
            at_floor: false,
            nested: false,
            tracked: false,
        }
    }

    /// Adds a launch of the same call. A sum of finite times is finite: a call makes fewer than 2^32
    /// launches, and a time is a float's.
    #[inline]
    pub fn add(&mut self, launch: Sample) {
        self.raw_ns += launch.raw_ns;
        self.at_ns = self.at_ns.max(launch.at_ns);
        self.brackets += launch.brackets;
        self.weight = launch.weight;
        self.fed &= launch.fed;
        self.queued &= launch.queued;
        self.at_floor &= launch.at_floor;
        self.nested |= launch.nested;
        self.tracked |= launch.tracked;
    }

    /// What a call without launches adds up to.
    pub const NOTHING: Sample =
        Sample { at_floor: true, brackets: 0, fed: true, queued: true, ..Sample::of(0.0) };

    /// A sample of the host clock, for which there is no GPU to feed, and which ended `at_ns`.
    pub fn by_host(took: Duration, at_ns: u64) -> Sample {
        Sample { fed: true, at_ns, ..Sample::of(took.as_nanos() as f64) }
    }

    /// The same, which stands for so many calls.
    pub fn weighted(self, weight: f32) -> Sample {
        Sample { weight, ..self }
    }

    /// What the clock said, in nanoseconds.
    pub fn raw_ns(self) -> f64 {
        self.raw_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_time() {
        for no_time in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5] {
            assert_eq!(Sample::new(no_time), None);
        }
        assert_eq!(Sample::new(0.0).map(Sample::raw_ns), Some(0.0));
        assert_eq!(Sample::new(1280.0).map(Sample::raw_ns), Some(1280.0));
    }
}
