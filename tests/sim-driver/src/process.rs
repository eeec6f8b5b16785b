//! The beginning and the end of the driver in a process.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::model::Model;

const ALIVE: u8 = 0;
const EXITED: u8 = 1;
const FORKED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ALIVE);

/// Whether calls reach the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// The driver's own exit handler has run.
    Exited,
    /// A child of a process that had initialised the driver. It may not even take the model's lock:
    /// the thread that held it at the fork does not exist here.
    Forked,
}

/// Where the process stands.
pub(crate) fn state() -> State {
    match STATE.load(Ordering::Relaxed) {
        ALIVE => State::Alive,
        EXITED => State::Exited,
        _ => State::Forked,
    }
}

extern "C" fn exited() {
    // A forked child stays what it is.
    if STATE.compare_exchange(ALIVE, EXITED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        Model::end();
    }
}

extern "C" fn forked() {
    STATE.store(FORKED, Ordering::Relaxed);
}

/// Registers the handlers. Exit handlers run in the reverse order of their registration, so those
/// that the program registers after this still find a live driver.
pub(crate) fn watch() {
    // SAFETY: both are plain functions that live as long as the library, which is never unloaded
    // while the model is in use, and only store to an atomic.
    unsafe {
        libc::atexit(exited);
        libc::pthread_atfork(None, None, Some(forked));
    }
}
