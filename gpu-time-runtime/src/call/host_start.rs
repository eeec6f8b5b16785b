//! Measures how long calls timed by events take on the host.

use crate::gpu::Gpu;
use crate::record::series_counters::{HostTime, SeriesRef};
use crate::record::threads::{self, StreamCall};
use crate::site::counters::CallCounters;
use crate::stats::call_tree::place::PathId;

/// The number of a thread's first calls of a function whose host times are all measured.
const FIRST: u64 = 16;
/// One in this many of the later calls is measured. Reading the clock takes tens of nanoseconds, which
/// not every call should pay.
const ONE_IN: u8 = 8;
/// 2^64 divided by the golden ratio. Its multiples are spread so evenly that any regular subset of the calls,
/// such as every eighth, is measured about as often as the others.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The host time at which a call timed by events began, if its host time is measured.
#[derive(Clone, Copy)]
pub(crate) struct HostStart {
    ns: u64,
    /// The number of calls that this one represents.
    weight: f32,
}

impl HostStart {
    /// Reads the clock if the call's host time is measured. Async functions are never measured, because their
    /// thread does other work between polls.
    #[inline]
    pub fn of(call: &StreamCall) -> Option<HostStart> {
        let nth = threads::counters(call.site).map_or(0, CallCounters::timed);
        let weight = weight(nth, call.weight).filter(|_| !call.site.spec.is_async)?;
        Some(HostStart { ns: call.context.now_ns(), weight })
    }

    /// Returns the call's host time up to `end_ns`, unless the clock has gone backwards.
    #[inline]
    pub fn until(self, end_ns: u64, series: SeriesRef, path: Option<PathId>) -> Option<HostTime> {
        let ns = end_ns.checked_sub(self.ns)?;
        Some(HostTime { series, path, ns, weight: self.weight })
    }
}

/// Returns the number of calls that a thread's `nth` timed call represents, or `None` if its host time
/// is not measured. `drawn` is the number of calls for each timed one.
#[inline]
fn weight(nth: u64, drawn: f32) -> Option<f32> {
    if nth <= FIRST {
        return Some(drawn);
    }
    let is_chosen = nth.wrapping_mul(STRIDE) < u64::MAX / u64::from(ONE_IN);
    is_chosen.then(|| f32::from(ONE_IN) * drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_calls_are_all_measured() {
        assert!((1..=FIRST).all(|nth| weight(nth, 1.0) == Some(1.0)));
    }

    #[test]
    fn regular_subsets_of_the_calls_are_measured_as_often() {
        const CALLS: u64 = 8_000;
        for every in 1..=64 {
            for first in [1, every] {
                let calls = (0..CALLS).map(|nth| 1_000 + first + nth * every);
                let chosen = calls.filter_map(|nth| weight(nth, 1.0)).count() as u64;
                let expected = CALLS / u64::from(ONE_IN);
                assert!(chosen.abs_diff(expected) < expected / 20, "{chosen} of every {every}");
            }
        }
    }

    #[test]
    fn measured_calls_represent_all() {
        for calls in [1, FIRST, 1_000, 100_000] {
            let represented: f32 = (1..=calls).filter_map(|nth| weight(nth, 1.0)).sum();
            let represented = represented as u64;
            assert!(represented.abs_diff(calls) <= 16 + calls / 100, "{represented} of {calls}");
        }
    }

    #[test]
    fn measured_calls_represent_those_that_were_not_sampled() {
        let represented = |nth| weight(nth, 100.0);
        assert!((1..=FIRST).all(|nth| represented(nth) == Some(100.0)));
        let later = (FIRST + 1..1_000).filter_map(represented);
        assert!(later.into_iter().all(|calls| calls == 100.0 * f32::from(ONE_IN)));
    }
}
