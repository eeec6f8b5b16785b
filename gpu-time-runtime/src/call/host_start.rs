//! Measures how long calls timed by events take on the host.

use crate::gpu::Gpu;
use crate::record::threads::{self, StreamCall};
use crate::site::counters::CallCounters;

/// The number of a thread's first calls of a function whose host times are all measured.
const FIRST: u64 = 16;
/// One in this many of the later calls is measured. Reading the clock takes tens of nanoseconds, which
/// not every call should pay.
const ONE_IN: u8 = 8;
/// 2^64 divided by the golden ratio. Its multiples are spread so evenly that any regular subset of the calls,
/// such as every eighth, is measured about as often as the others.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The host time at which a call timed by events began, or `None` if its host time is not measured.
#[derive(Clone, Copy)]
pub(crate) struct HostStart(Option<Start>);

#[derive(Clone, Copy)]
struct Start {
    ns: u64,
    /// The number of calls that this one represents.
    weight: u8,
}

/// The time that a call took on the host.
#[derive(Clone, Copy)]
pub(crate) struct MeasuredHostTime {
    pub ns: u64,
    /// The number of calls that this one represents.
    pub weight: u8,
}

impl HostStart {
    pub const NONE: HostStart = HostStart(None);

    /// Reads the clock if the call's host time is measured. Async functions are never measured, because their
    /// thread does other work between polls.
    #[inline]
    pub fn of(call: &StreamCall) -> HostStart {
        let nth = threads::counters(call.site).map_or(0, CallCounters::timed);
        let weight = weight(nth).filter(|_| !call.site.spec.is_async);
        HostStart(weight.map(|weight| Start { ns: call.context.now_ns(), weight }))
    }

    /// Returns the time from the start to `end_ns`, which is called only if the host time is measured.
    #[inline]
    pub fn until(self, end_ns: impl FnOnce() -> u64) -> Option<MeasuredHostTime> {
        let Start { ns, weight } = self.0?;
        Some(MeasuredHostTime { ns: end_ns().checked_sub(ns)?, weight })
    }
}

/// Returns the number of calls that a thread's `nth` timed call represents, or `None` if its host time
/// is not measured.
#[inline]
fn weight(nth: u64) -> Option<u8> {
    if nth <= FIRST {
        return Some(1);
    }
    (nth.wrapping_mul(STRIDE) < u64::MAX / u64::from(ONE_IN)).then_some(ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_calls_are_all_measured() {
        assert!((1..=FIRST).all(|nth| weight(nth) == Some(1)));
    }

    #[test]
    fn regular_subsets_of_the_calls_are_measured_as_often() {
        const CALLS: u64 = 8_000;
        for every in 1..=64 {
            for first in [1, every] {
                let calls = (0..CALLS).map(|nth| 1_000 + first + nth * every);
                let chosen = calls.filter_map(weight).count() as u64;
                let expected = CALLS / u64::from(ONE_IN);
                assert!(chosen.abs_diff(expected) < expected / 20, "{chosen} of every {every}");
            }
        }
    }

    #[test]
    fn measured_calls_represent_all() {
        for calls in [1, FIRST, 1_000, 100_000] {
            let represented: u64 = (1..=calls).filter_map(weight).map(u64::from).sum();
            assert!(represented.abs_diff(calls) <= 16 + calls / 100, "{represented} of {calls}");
        }
    }
}
