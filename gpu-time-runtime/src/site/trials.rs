//! The calls of a function by which it is known what timing adds, while a budget is set.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::stats::budget::WholeCalls;
use crate::stats::effect::{Effect, LONG_NS};

/// The times of a function's calls.
pub(crate) struct Trials {
    effect: Mutex<Effect>,
    is_unit: AtomicBool,
    are_short: AtomicBool,
    /// From 1, the place of the function among those that the budget steers. 0 without one.
    place: AtomicU32,
    /// The place of the function whose calls are compared as a whole, if this function was timed in one.
    unit: AtomicU32,
}

impl Trials {
    pub const fn new() -> Trials {
        Trials {
            effect: Mutex::new(Rank::Trials, Effect::new()),
            is_unit: AtomicBool::new(false),
            are_short: AtomicBool::new(false),
            place: AtomicU32::new(0),
            unit: AtomicU32::new(0),
        }
    }

    /// Returns `true` if calls are too short for a place on the stack that they do not need.
    #[inline(always)]
    pub fn are_short(&self) -> bool {
        self.are_short.load(Relaxed)
    }

    /// Returns `true` if calls are compared as a whole.
    #[inline]
    pub fn is_unit(&self) -> bool {
        self.is_unit.load(Relaxed)
    }

    pub fn add(&self, add: impl FnOnce(&mut Effect)) {
        let mut effect = locked(&self.effect);
        add(&mut effect);
        self.is_unit.store(effect.is_unit(), Relaxed);
        self.are_short.store(effect.mean_ns().is_some_and(|ns| ns < LONG_NS), Relaxed);
    }

    /// Begins anew with this index of the function among those that a budget steers.
    pub fn begin(&self, index: usize) {
        *locked(&self.effect) = Effect::new();
        self.place.store(index as u32 + 1, Relaxed);
    }

    /// Notes that this function was chosen in a call of `unit`.
    pub fn set_unit(&self, unit: &Trials) {
        self.unit.store(unit.place.load(Relaxed), Relaxed);
    }

    /// Returns what is known of the calls.
    pub fn known(&self) -> WholeCalls {
        let effect = *locked(&self.effect);
        let unit = (self.unit.load(Relaxed) as usize).checked_sub(1);
        WholeCalls { unit, mean_ns: effect.mean_ns(), added: effect.added() }
    }
}
