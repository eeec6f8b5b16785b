//! Detection of forked children, in which the runtime does nothing.
//!
//! A child that was forked after the first timed call has copies of the parent's counters, of locks
//! that the parent's other threads held, and perhaps of the driver's state. It must use none of them.

#![allow(unsafe_code)] // the registration with the C library

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::base::pin;
use crate::base::switches::{self, SWITCHES};

/// The reason reported for calls in a forked child.
pub(crate) const FORKED: &str = "forked after the first call of a timed function";

/// Registers the fork handler, and keeps the runtime's code loaded. Must be called before anything is
/// counted or locked.
pub(crate) fn mark_children() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Two threads may both register, which is harmless. If one waited for the other, it would wait for
    // ever in a child that was forked meanwhile.
    if !DONE.load(Relaxed) {
        pin::pin_runtime();
        // SAFETY: `in_child` makes no call that is unsafe between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        DONE.store(true, Relaxed);
    }
}

extern "C" fn in_child() {
    SWITCHES.forked.store(true, Relaxed);
    switches::close();
}

/// Returns `true` in a child that was forked after the first timed call.
#[inline]
pub(crate) fn is_forked() -> bool {
    SWITCHES.forked.load(Relaxed)
}
