//! One measurement, or the reason why there is none.

use std::time::Duration;

pub use gpu_time_report::{CacheState, Losses, Lost, Measure};

/// The time of one bracket, of one call's sum, or of one call timed by the host clock.
///
/// Invariant: the time is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    raw_ns: f64,
    /// The host's time at its end: of the stop record, of the last stop record for a sum, or of the
    /// reading for a graph node.
    pub at_ns: u64,
    /// Brackets in the time: 1, or for a sum the number of launches that the call made.
    pub brackets: u32,
    /// Calls that the sample stands for.
    pub weight: f32,
    pub flags: SampleFlags,
}

/// The circumstances of a measurement, by which its time is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFlags {
    /// The GPU cannot have waited for the CPU inside the bracket. Always set for the host clock.
    pub fed: bool,
    /// Enough brackets were queued behind this one, when the GPU passed it, to lengthen what its events
    /// read.
    pub queued: bool,
    /// Nothing ran inside.
    pub at_floor: bool,
    /// Another timed bracket lay inside.
    pub nested: bool,
    /// The bracket also held waits and records that cudarc's event tracking enqueued.
    pub tracked: bool,
}

impl Sample {
    /// Creates a sample of one bracket without flags. Returns `None` if `raw_ns` is not a time.
    pub fn new(raw_ns: f64) -> Option<Sample> {
        (raw_ns.is_finite() && raw_ns >= 0.0).then_some(Sample::of(raw_ns))
    }

    fn of(raw_ns: f64) -> Sample {
        Sample { raw_ns, at_ns: 0, brackets: 1, weight: 1.0, flags: SampleFlags::default() }
    }

    /// Creates a sum before the first launch is added to it.
    pub fn nothing() -> Sample {
        let flags = SampleFlags { fed: true, queued: true, at_floor: true, ..Default::default() };
        Sample { brackets: 0, flags, ..Sample::of(0.0) }
    }

    /// Creates a sample of the host clock, which has no GPU to feed, and which ended `at_ns`.
    pub fn by_host(took: Duration, at_ns: u64) -> Sample {
        let flags = SampleFlags { fed: true, ..SampleFlags::default() };
        Sample { at_ns, flags, ..Sample::of(took.as_nanos() as f64) }
    }

    /// Sets the host's time at the end.
    pub fn at(self, at_ns: u64) -> Sample {
        Sample { at_ns, ..self }
    }

    /// Sets the number of calls that the sample stands for.
    pub fn weighted(self, weight: f32) -> Sample {
        Sample { weight, ..self }
    }

    /// Sets all flags.
    pub fn flagged(self, flags: SampleFlags) -> Sample {
        Sample { flags, ..self }
    }

    /// Adds a launch of the same call. A sum of finite times is finite: a call makes fewer than 2^32
    /// launches, and a time is a float's.
    #[inline]
    pub fn add(&mut self, launch: Sample) {
        self.raw_ns += launch.raw_ns;
        self.at_ns = self.at_ns.max(launch.at_ns);
        self.brackets += launch.brackets;
        self.weight = launch.weight;
        self.flags.fed &= launch.flags.fed;
        self.flags.queued &= launch.flags.queued;
        self.flags.at_floor &= launch.flags.at_floor;
        self.flags.nested |= launch.flags.nested;
        self.flags.tracked |= launch.flags.tracked;
    }

    /// Returns the measured time in nanoseconds.
    pub fn raw_ns(self) -> f64 {
        self.raw_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_times_are_samples() {
        for no_time in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5] {
            assert_eq!(Sample::new(no_time), None);
        }
        assert_eq!(Sample::new(0.0).map(Sample::raw_ns), Some(0.0));
        assert_eq!(Sample::new(1280.0).map(Sample::raw_ns), Some(1280.0));
    }
}
