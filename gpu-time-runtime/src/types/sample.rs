//! Samples: single measurements.

use std::time::Duration;

pub use gpu_time_report::{CacheState, Losses, Lost, Measure};

/// The time of one bracket, of the sum of a call's brackets, or of one call by the host clock.
///
/// Invariant: the time is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    raw_ns: f64,
    /// The host's time at the end: at the stop record, for a sum at the last one, or when a node was read.
    pub at_ns: u64,
    /// The number of brackets: 1, or for a sum the number of launches of the call.
    pub brackets: u32,
    /// The number of calls that the sample stands for.
    pub weight: f32,
    /// The GPU cannot have waited for the CPU inside the bracket. Samples of the host clock are always fed.
    pub fed: bool,
    /// A long queue was behind the bracket when the GPU passed it, which increases the time between its events.
    pub queued: bool,
    /// No kernel ran inside the bracket.
    pub at_floor: bool,
    /// Another timed bracket lay inside.
    pub nested: bool,
    /// The bracket includes waits and records that cudarc's event tracking enqueued.
    pub tracked: bool,
}

impl Sample {
    /// Creates a starved sample of one bracket, or `None` if `raw_ns` is not a valid time.
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

    /// Adds a launch of the same call. The sum stays finite: a call makes fewer than 2^32 launches, and times
    /// are far below the range of `f64`.
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

    /// The sum of a call without launches.
    pub const NOTHING: Sample =
        Sample { at_floor: true, brackets: 0, fed: true, queued: true, ..Sample::of(0.0) };

    /// Creates a sample of the host clock that ended at `at_ns`. It is fed, since no GPU is involved.
    pub fn by_host(took: Duration, at_ns: u64) -> Sample {
        Sample { fed: true, at_ns, ..Sample::of(took.as_nanos() as f64) }
    }

    /// Returns the sample with another weight.
    pub fn weighted(self, weight: f32) -> Sample {
        Sample { weight, ..self }
    }

    /// Returns the measured time in nanoseconds, with the bias.
    pub fn raw_ns(self) -> f64 {
        self.raw_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_time_is_rejected() {
        for no_time in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5] {
            assert_eq!(Sample::new(no_time), None);
        }
        assert_eq!(Sample::new(0.0).map(Sample::raw_ns), Some(0.0));
        assert_eq!(Sample::new(1280.0).map(Sample::raw_ns), Some(1280.0));
    }
}
