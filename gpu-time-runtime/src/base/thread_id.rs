//! Numbers that identify threads, and a flag for threads that are ending.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    // Without destructors, so that they can be read until the thread ends.
    static ID: Cell<u64> = const { Cell::new(0) };
    static IS_ENDING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the calling thread's number, from 1. No other thread of the process ever gets the same one.
pub(crate) fn current() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    match ID.get() {
        0 => {
            let id = NEXT.fetch_add(1, Relaxed);
            ID.set(id);
            id
        }
        id => id,
    }
}

/// Returns `true` while the calling thread runs its thread-local destructors.
pub(crate) fn is_ending() -> bool {
    IS_ENDING.get()
}

/// Marks that the calling thread runs its thread-local destructors.
pub(crate) fn mark_ending() {
    IS_ENDING.set(true);
}
