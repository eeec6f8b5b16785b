//! The phase in progress.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A time in which CUPTI records everything that the process enqueues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Phase {
    /// From 1, in order of time.
    pub number: u32,
    /// The number of calls that one in this phase stands for.
    pub weight: f32,
}

struct CurrentPhase {
    /// The number of a phase that ends by itself and, above that, the bits of its weight. 0 without one.
    timed: AtomicU64,
    /// The number of a phase without an end, in which every call is recorded. 0 without one.
    endless: AtomicU32,
    /// The number of the last phase.
    last: AtomicU32,
}

static CURRENT: CurrentPhase =
    CurrentPhase { timed: AtomicU64::new(0), endless: AtomicU32::new(0), last: AtomicU32::new(0) };

/// Returns the phase in progress.
#[inline]
pub(crate) fn phase() -> Option<Phase> {
    let endless = CURRENT.endless.load(Relaxed);
    if endless != 0 {
        return Some(Phase { number: endless, weight: 1.0 });
    }
    let phase = CURRENT.timed.load(Relaxed);
    let weight = f32::from_bits((phase >> 32) as u32);
    (phase != 0).then_some(Phase { number: phase as u32, weight })
}

fn next_number() -> u32 {
    CURRENT.last.fetch_add(1, Relaxed) + 1
}

/// Begins a phase that ends by itself, in which a call stands for `weight` calls.
pub(super) fn begin(weight: f32) {
    let phase = u64::from(next_number()) | u64::from(weight.to_bits()) << 32;
    CURRENT.timed.store(phase, Relaxed);
}

pub(super) fn end() {
    CURRENT.timed.store(0, Relaxed);
}

/// Begins a phase that does not end by itself, in which every call is recorded.
pub(super) fn begin_endless() {
    CURRENT.endless.store(next_number(), Relaxed);
}

pub(super) fn end_endless() {
    CURRENT.endless.store(0, Relaxed);
}

/// Returns `true` in a phase without an end.
pub(super) fn is_endless() -> bool {
    CURRENT.endless.load(Relaxed) != 0
}
