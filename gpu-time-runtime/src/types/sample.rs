//! A single measurement.

use std::time::Duration;

pub use gpu_time_report::{CacheState, Losses, Lost, Measure};

/// The time of one bracket, the sum for one call, or one call timed by the host clock.
///
/// Invariant: the time is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    raw_ns: f64,
    /// The host time at which the measurement ended: at its stop record, at the last stop record
    /// for a sum, or at the time of reading for a graph node.
    pub at_ns: u64,
    /// The number of brackets included: 1, or for a sum, the number of launches made by the call.
    pub brackets: u32,
    /// The number of calls that the sample represents.
    pub weight: f32,
    /// The number of other brackets inside, which lengthen it; `None` if some of them overlap its
    /// ends.
    pub inner: Option<u16>,
    /// The part of the time that other brackets inside and a long queue behind added; `None` if it is unknown. 0 for a
    /// starved sample, which is only a bound.
    pub added_ns: Option<f32>,
    pub flags: SampleFlags,
}

/// The conditions of a measurement, which determine how its time is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFlags {
    /// The GPU cannot have waited for the CPU inside the bracket. Always set with the host clock.
    pub fed: bool,
    /// When the GPU passed this bracket, enough brackets were queued behind it to lengthen the
    /// measured time.
    pub queued: bool,
    /// Nothing ran inside the bracket.
    pub at_floor: bool,
    /// The bracket contained another timed bracket.
    pub nested: bool,
    /// The bracket also contained waits and records enqueued by cudarc's event tracking.
    pub tracked: bool,
}

impl Sample {
    /// Creates a one-bracket sample without flags. Returns `None` if `raw_ns` is not a valid time.
    pub fn new(raw_ns: f64) -> Option<Sample> {
        (raw_ns.is_finite() && raw_ns >= 0.0).then_some(Sample::of(raw_ns))
    }

    fn of(raw_ns: f64) -> Sample {
        Sample {
            raw_ns,
            at_ns: 0,
            brackets: 1,
            weight: 1.0,
            inner: Some(0),
            added_ns: Some(0.0),
            flags: SampleFlags::default(),
        }
    }

    /// Creates the sum of a call without launches, to which launches can be added.
    pub fn nothing() -> Sample {
        let flags = SampleFlags { fed: true, queued: true, at_floor: true, ..Default::default() };
        Sample { brackets: 0, flags, ..Sample::of(0.0) }
    }

    /// Creates a host-clock sample that ended at `at_ns`. It counts as fed, because no GPU is
    /// involved.
    pub fn by_host(took: Duration, at_ns: u64) -> Sample {
        let flags = SampleFlags { fed: true, ..SampleFlags::default() };
        Sample { at_ns, flags, ..Sample::of(took.as_nanos() as f64) }
    }

    /// Sets the host time at which the measurement ended.
    pub fn at(self, at_ns: u64) -> Sample {
        Sample { at_ns, ..self }
    }

    /// Sets the number of calls that the sample represents.
    pub fn weighted(self, weight: f32) -> Sample {
        Sample { weight, ..self }
    }

    /// Sets the number of other brackets inside, and the time that they and a queue added, if these are known.
    pub fn around(self, inner: Option<u16>, added_ns: Option<f64>) -> Sample {
        Sample { inner, added_ns: added_ns.map(|ns| ns as f32), ..self }
    }

    /// Sets all flags.
    pub fn flagged(self, flags: SampleFlags) -> Sample {
        Sample { flags, ..self }
    }

    /// Adds a launch made by the same call. The sum stays finite: a call makes fewer than 2^32
    /// launches, and each time comes from an `f32`.
    #[inline]
    pub fn add(&mut self, launch: Sample) {
        self.raw_ns += launch.raw_ns;
        self.at_ns = self.at_ns.max(launch.at_ns);
        self.brackets += launch.brackets;
        self.weight = launch.weight;
        self.inner = self.inner.zip(launch.inner).map(|(own, more)| own.saturating_add(more));
        self.flags.fed &= launch.flags.fed;
        let both = self.added_ns.zip(launch.added_ns);
        self.added_ns = both.map(|(own, more)| if self.flags.fed { own + more } else { 0.0 });
        self.flags.queued &= launch.flags.queued;
        self.flags.at_floor &= launch.flags.at_floor;
        self.flags.nested |= launch.flags.nested;
        self.flags.tracked |= launch.flags.tracked;
    }

    /// Returns the measured time in nanoseconds.
    pub fn raw_ns(self) -> f64 {
        self.raw_ns
    }

    /// Returns the time as if no other bracket had been inside, and none queued behind. If it is unknown what these
    /// added, returns the measured time.
    #[inline]
    pub fn alone_ns(self) -> f64 {
        (self.raw_ns - f64::from(self.added_ns.unwrap_or(0.0))).max(0.0)
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
