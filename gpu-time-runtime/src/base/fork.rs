//! Detection of forked children, in which the runtime does nothing.
//!
//! A child that was forked after the first timed call has copies of the parent's counters, of locks
//! that the parent's other threads held, and perhaps of the driver's state. It must use none of them. Before the
//! first timed call, locks can be held only inside the library's public functions.

#![allow(unsafe_code)] // the registration with the C library

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::base::inside::{self, Inside};
use crate::base::pin;
use crate::base::switches::{self, SWITCHES};

/// The reason reported for calls in a forked child.
pub(crate) const FORKED: &str =
    "forked after the first call of a timed function, or during a call of gpu-time";

struct ForkState {
    is_registered: AtomicBool,
    /// Set once a child must not use the runtime, whenever it is forked.
    is_used: AtomicBool,
    /// The number of existing [`PublicCall`]s.
    calls: AtomicUsize,
}

static FORK: ForkState = ForkState {
    is_registered: AtomicBool::new(false),
    is_used: AtomicBool::new(false),
    calls: AtomicUsize::new(0),
};

/// Registers the fork handler, and keeps the runtime's code loaded. Must be called before anything is
/// counted or locked.
pub(crate) fn mark_children() {
    register();
    FORK.is_used.store(true, SeqCst);
}

fn register() {
    // Two threads may both register, which is harmless. If one waited for the other, it would wait for
    // ever in a child that was forked meanwhile.
    if !FORK.is_registered.load(Relaxed) {
        pin::pin_runtime();
        // SAFETY: `in_child` makes no call that is unsafe between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        FORK.is_registered.store(true, Relaxed);
    }
}

extern "C" fn in_child() {
    if FORK.is_used.load(SeqCst) || FORK.calls.load(SeqCst) > 0 {
        SWITCHES.forked.store(true, Relaxed);
        switches::close();
    }
}

/// Returns `true` in a child that must not use the runtime.
#[inline]
pub(crate) fn is_forked() -> bool {
    SWITCHES.forked.load(Relaxed)
}

/// A call of one of the library's public functions, which may take locks. The thread is inside the runtime.
#[must_use]
pub(crate) struct PublicCall {
    _inside: Inside,
}

/// Begins a call of a public function. Every one that may take a lock begins with this. Returns `None` in a forked
/// child, where locks may be held for ever.
pub(crate) fn begin_call() -> Option<PublicCall> {
    if is_forked() {
        return None;
    }
    register();
    FORK.calls.fetch_add(1, SeqCst);
    Some(PublicCall { _inside: inside::enter() })
}

impl Drop for PublicCall {
    fn drop(&mut self) {
        FORK.calls.fetch_sub(1, SeqCst);
    }
}
