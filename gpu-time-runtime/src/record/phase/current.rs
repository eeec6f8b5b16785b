//! The phase in progress, and its window.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::cupti;
use crate::record::phase::matching::windows;
use crate::record::phase::notes;

/// The length of the windows into which a phase without an end is divided.
pub(super) const WINDOW: Duration = Duration::from_millis(200);

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
    has_window: AtomicBool,
    /// A call opened the window of a phase without an end, maybe before it creates a context.
    awaits_launch: AtomicBool,
    /// The time from which on phases could begin. Before, there was no context, or CUPTI was being loaded.
    ready: OnceLock<Instant>,
    /// The thread that begins and ends phases, once it runs.
    thread: OnceLock<Thread>,
}

static CURRENT: CurrentPhase = CurrentPhase {
    timed: AtomicU64::new(0),
    endless: AtomicU32::new(0),
    last: AtomicU32::new(0),
    has_window: AtomicBool::new(false),
    awaits_launch: AtomicBool::new(false),
    ready: OnceLock::new(),
    thread: OnceLock::new(),
};

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

/// Wakes the thread that begins and ends phases, for example because a CUDA context has been found.
pub(crate) fn wake() {
    if let Some(thread) = CURRENT.thread.get() {
        thread.unpark();
    }
}

/// Opens the window of a phase without an end, for a call that is opened in it. CUPTI must be switched on.
pub(crate) fn begin_window() {
    if CURRENT.endless.load(Relaxed) != 0 && !has_window() {
        open_window(WINDOW, false);
        CURRENT.awaits_launch.store(true, Relaxed);
        wake();
    }
}

/// Notes that the process launches, so there is a context. Called from CUPTI's callback for driver calls, so it takes no
/// lock and allocates nothing.
pub(crate) fn note_launch() {
    if CURRENT.awaits_launch.load(Relaxed) && CURRENT.awaits_launch.swap(false, Relaxed) {
        wake();
    }
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

/// Opens a window that is planned to be of this length, unless a call has. If its time `is_drawn`, it stands for others.
pub(super) fn open_window(length: Duration, is_drawn: bool) {
    if !CURRENT.has_window.swap(true, Relaxed) {
        CURRENT.ready.get_or_init(Instant::now);
        windows().open(length.as_nanos() as u64, cupti::now_ns(), is_drawn);
        notes::open();
    }
}

pub(super) fn has_window() -> bool {
    CURRENT.has_window.load(Relaxed)
}

pub(super) fn note_closed_window() {
    CURRENT.has_window.store(false, Relaxed);
}

pub(super) fn ready() -> Option<Instant> {
    CURRENT.ready.get().copied()
}

/// Notes that the calling thread begins and ends phases.
pub(super) fn set_thread() {
    _ = CURRENT.thread.set(thread::current());
}
