//! The flags that every call reads, together in one cache line.

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32,
    Ordering::{AcqRel, Relaxed},
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
    /// The user has set the whole event bias, so nothing else is subtracted.
    pub has_given_bias: AtomicBool,
}

pub(crate) static SWITCHES: Switches = Switches {
    timing: TimingSwitch::new(),
    forked: AtomicBool::new(false),
    cold_override: AtomicU8::new(0),
    traced: AtomicBool::new(false),
    budget: AtomicBool::new(false),
    has_given_bias: AtomicBool::new(false),
};

/// The run-time switch, the number of recordings in progress, and whether an NVTX tool listens: one
/// value, so that an unsampled call has nothing else to read.
///
/// Invariant: once closed, it stays closed.
struct TimingSwitch(AtomicU32);

const ON: u32 = 1;
const CLOSED: u32 = 2;
const STATE: u32 = ON | CLOSED;
/// The amount that one recording adds.
const RECORDING: u32 = 4;
/// An NVTX tool listens to ranges.
const LISTENING: u32 = 1 << 31;
/// Whole calls are compared, to know what timing adds.
const COMPARING: u32 = 1 << 30;

impl TimingSwitch {
    const fn new() -> Self {
        TimingSwitch(AtomicU32::new(ON))
    }

    fn switch(&self, on: bool) {
        if on {
            self.0.fetch_or(ON, AcqRel);
        } else {
            self.0.fetch_and(!ON, AcqRel);
        }
    }

    fn close(&self) {
        self.0.fetch_or(CLOSED, AcqRel);
    }

    #[inline]
    fn now(&self) -> SwitchReading {
        SwitchReading(self.0.load(Relaxed))
    }
}

/// A reading of the run-time switch.
#[derive(Clone, Copy)]
pub(crate) struct SwitchReading(u32);

impl SwitchReading {
    /// Returns `true` while calls are timed.
    #[inline]
    pub fn is_on(self) -> bool {
        self.0 & STATE == ON
    }

    /// Returns `true` while calls are timed, nothing is [recorded](begin_recording) and no tool
    /// [listens](begin_listening).
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 == ON
    }

    /// Returns `true` if calls are on the stack for a comparison, and for nothing else.
    #[inline]
    pub fn is_only_comparing(self) -> bool {
        self.0 == ON | COMPARING
    }

    fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    fn recordings(self) -> u32 {
        (self.0 & !(LISTENING | COMPARING)) / RECORDING
    }
}

/// Reads the run-time switch.
#[inline]
pub(crate) fn timing() -> SwitchReading {
    SWITCHES.timing.now()
}

/// Returns `true` while calls are timed.
#[inline]
pub(crate) fn is_on() -> bool {
    timing().is_on()
}

/// Turns timing on or off. Does nothing once timing is [closed](close).
pub(crate) fn switch(on: bool) {
    SWITCHES.timing.switch(on);
}

/// Returns `true` once timing is off for good: while the process ends, and in a forked child.
pub(crate) fn is_closed() -> bool {
    timing().is_closed()
}

/// Turns timing off for good.
pub(crate) fn close() {
    SWITCHES.timing.close();
}

/// The kinds of recording that calls must know about when they begin.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum RecordingState {
    /// CUPTI records an opened call or a phase.
    Now = RECORDING,
    /// A phase may begin at any time. Calls are on the stack for it.
    #[cfg(feature = "kernels")]
    Soon = RECORDING << 16,
}

/// Counts a recording as in progress.
pub(crate) fn begin_recording(recording: RecordingState) {
    SWITCHES.timing.0.fetch_add(recording as u32, Relaxed);
}

/// Counts a recording as ended.
pub(crate) fn end_recording(recording: RecordingState) {
    SWITCHES.timing.0.fetch_sub(recording as u32, Relaxed);
}

/// Notes that a tool listens to ranges from now on.
#[cfg(feature = "nvtx")]
pub(crate) fn begin_listening() {
    SWITCHES.timing.0.fetch_or(LISTENING, Relaxed);
}

/// Sets whether whole calls are compared.
pub(crate) fn set_comparing(is_comparing: bool) {
    if is_comparing {
        SWITCHES.timing.0.fetch_or(COMPARING, Relaxed);
    } else {
        SWITCHES.timing.0.fetch_and(!COMPARING, Relaxed);
    }
}

/// Returns `true` while something is recorded, or about to be, a tool listens, or calls are compared.
#[inline]
pub(crate) fn is_observed() -> bool {
    timing().0 & !STATE != 0
}

/// Returns `true` while a tool listens to ranges.
#[cfg(feature = "nvtx")]
#[inline]
pub(crate) fn is_listening() -> bool {
    timing().0 & LISTENING != 0
}

/// Returns `true` while something is recorded.
pub(crate) fn is_recording() -> bool {
    timing().recordings() & 0xffff != 0
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
        assert!(timings.iter().all(|timing| timing.now().is_closed() && !timing.now().is_on()));
    }

    #[test]
    fn recordings_survive_switching_and_closing() {
        let timing = TimingSwitch::new();
        assert!(timing.now().is_plain());
        timing.0.fetch_add(RecordingState::Now as u32, Relaxed);
        assert!(timing.now().is_on() && !timing.now().is_plain());
        timing.switch(false);
        assert!(!timing.now().is_on());
        timing.switch(true);
        timing.close();
        assert_eq!(timing.now().recordings(), 1);
        timing.0.fetch_or(LISTENING, Relaxed);
        assert_eq!(timing.now().recordings(), 1);
        timing.0.fetch_sub(RecordingState::Now as u32, Relaxed);
        assert!(timing.now().is_closed() && timing.now().recordings() == 0);
    }
}
