//! The flags that every call reads, together in one cache line.

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// The process-wide flags.
#[repr(align(64))]
pub(crate) struct Switches {
    timing: TimingSwitch,
    /// Set in a child that was forked after the first timed call.
    pub forked: AtomicBool,
    /// The cache state that a running `until_stable` asks for; 0 if none does.
    pub cold_override: AtomicU8,
    /// Calls and brackets are kept for a trace.
    pub traced: AtomicBool,
    /// Timing has a budget.
    pub budget: AtomicBool,
    /// The number of calls and windows that are being recorded by CUPTI, and [`MARKING`] while
    /// calls are marked for a window to come. One value, since calls look at nothing else.
    pub opened: AtomicU32,
}

/// What a window adds to [`Switches::opened`] before it is open.
pub(crate) const MARKING: u32 = 1 << 16;

pub(crate) static SWITCHES: Switches = Switches {
    timing: TimingSwitch::new(),
    forked: AtomicBool::new(false),
    cold_override: AtomicU8::new(0),
    traced: AtomicBool::new(false),
    budget: AtomicBool::new(false),
    opened: AtomicU32::new(0),
};

/// The run-time switch. One value, so that closing and switching on cannot overtake each other.
///
/// Invariant: once closed, it stays closed.
struct TimingSwitch(AtomicU8);

const OFF: u8 = 0;
const ON: u8 = 1;
const CLOSED: u8 = 2;

impl TimingSwitch {
    const fn new() -> Self {
        TimingSwitch(AtomicU8::new(ON))
    }

    fn switch(&self, on: bool) {
        let new = if on { ON } else { OFF };
        // An error means closed, and that is final.
        _ = self.0.fetch_update(AcqRel, Acquire, |now| (now != CLOSED).then_some(new));
    }

    fn close(&self) {
        self.0.swap(CLOSED, AcqRel);
    }
}

/// Returns `true` while calls are timed.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.timing.0.load(Relaxed) == ON
}

/// Turns timing on or off. Does nothing once timing is [closed](close).
pub(crate) fn switch(on: bool) {
    SWITCHES.timing.switch(on);
}

/// Returns `true` once timing is off for good: while the process ends, and in a forked child.
pub(crate) fn is_closed() -> bool {
    SWITCHES.timing.0.load(Relaxed) == CLOSED
}

/// Turns timing off for good.
pub(crate) fn close() {
    SWITCHES.timing.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn close_wins_over_concurrent_switch() {
        const ROUNDS: usize = 20_000;
        let timings: Vec<TimingSwitch> = (0..ROUNDS).map(|_| TimingSwitch::new()).collect();
        let barrier = Barrier::new(2);
        let race = |act: fn(&TimingSwitch)| {
            for timing in &timings {
                barrier.wait();
                act(timing);
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| race(|timing| timing.switch(true)));
            s.spawn(|| race(TimingSwitch::close));
        });
        assert!(timings.iter().all(|timing| timing.0.load(Relaxed) == CLOSED));
    }
}
