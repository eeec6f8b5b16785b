//! The window of the phase in progress.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::cupti;
use crate::record::collector::{records, records_by};
use crate::record::launches;
use crate::record::phase::current;

/// The length of the windows into which a phase without an end is divided.
pub(super) const LENGTH: Duration = Duration::from_millis(200);

/// The longest wait at the end of the program for another thread that takes records.
const PATIENCE: Duration = Duration::from_millis(500);

struct OpenWindow {
    is_open: AtomicBool,
    /// A call opened the window of a phase without an end, maybe before it creates a context.
    awaits_launch: AtomicBool,
    /// The time from which on phases could begin. Before, there was no context, or CUPTI was being loaded.
    ready: OnceLock<Instant>,
    /// The time at which the program ended.
    ended: OnceLock<Instant>,
    /// The thread that begins and ends phases, once it runs.
    thread: OnceLock<Thread>,
}

static WINDOW: OpenWindow = OpenWindow {
    is_open: AtomicBool::new(false),
    awaits_launch: AtomicBool::new(false),
    ready: OnceLock::new(),
    ended: OnceLock::new(),
    thread: OnceLock::new(),
};

/// Wakes the thread that begins and ends phases, for example because a CUDA context has been found.
pub(crate) fn wake() {
    if let Some(thread) = WINDOW.thread.get() {
        thread.unpark();
    }
}

/// Opens the window of a phase without an end, for a call that is opened in it. CUPTI must be switched on.
pub(crate) fn begin() {
    if current::is_endless() && !is_open() {
        open(LENGTH, false);
        WINDOW.awaits_launch.store(true, Relaxed);
        wake();
    }
}

/// Notes that the process launches, so there is a context. Called from CUPTI's callback for driver calls, so it takes no
/// lock and allocates nothing.
pub(crate) fn note_launch() {
    if WINDOW.awaits_launch.load(Relaxed) && WINDOW.awaits_launch.swap(false, Relaxed) {
        wake();
    }
}

/// Opens a window that is planned to be of this length, unless a call has, or the program has ended. If its time
/// `is_drawn`, it stands for others.
pub(super) fn open(length: Duration, is_drawn: bool) {
    WINDOW.ready.get_or_init(Instant::now);
    launches::prepare();
    let mut records = records();
    // Under the lock, so that another thread's call that finds the window open launches in it.
    let is_open = WINDOW.is_open.load(Relaxed);
    if !is_open && WINDOW.ended.get().is_none() {
        records.windows.open(length.as_nanos() as u64, cupti::now_ns(), is_drawn);
        launches::set_window(true);
    }
    WINDOW.is_open.store(true, Release);
}

pub(super) fn is_open() -> bool {
    WINDOW.is_open.load(Acquire)
}

/// Notes that the window has been closed.
pub(super) fn note_closed() {
    WINDOW.is_open.store(false, Relaxed);
}

pub(super) fn ready() -> Option<Instant> {
    WINDOW.ready.get().copied()
}

/// Closes the window, because the program has ended. No other one opens.
pub(super) fn end() {
    WINDOW.ended.get_or_init(Instant::now);
    launches::set_window(false);
    // Launches from now on are in no window, however long the lock takes.
    let end_ns = cupti::now_ns();
    if let Some(mut records) = records_by(Instant::now() + PATIENCE) {
        records.close_window(end_ns);
        // A thread may have been opening it.
        launches::set_window(false);
    }
}

/// Returns the time until which phases could begin.
pub(super) fn until() -> Instant {
    WINDOW.ended.get().copied().unwrap_or_else(Instant::now)
}

/// Notes that the calling thread begins and ends phases.
pub(super) fn set_thread() {
    _ = WINDOW.thread.set(thread::current());
}
