//! The driver's state in a process: alive, after its exit handler, or in a forked child.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::model::Model;

const ALIVE: u8 = 0;
const EXITED: u8 = 1;
const FORKED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ALIVE);

/// The driver's lifecycle in this process. Calls reach the model only while it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Alive,
    /// The driver's exit handler has run.
    Exited,
    /// A child forked after the driver was initialised. It must not even take the model's lock,
    /// because the thread that held it at the fork does not exist in the child.
    Forked,
}

/// Returns the state of this process.
pub(crate) fn state() -> ProcessState {
    match STATE.load(Ordering::Relaxed) {
        ALIVE => ProcessState::Alive,
        EXITED => ProcessState::Exited,
        _ => ProcessState::Forked,
    }
}

extern "C" fn exited() {
    // A forked child keeps its state.
    if STATE.compare_exchange(ALIVE, EXITED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        Model::end();
    }
}

extern "C" fn forked() {
    STATE.store(FORKED, Ordering::Relaxed);
}

/// Registers the exit and fork handlers. Exit handlers run in reverse order of registration, so
/// handlers that the program registers later still find the driver alive.
pub(crate) fn register_handlers() {
    // SAFETY: both functions belong to this library, which is not unloaded while the model is in
    // use. The fork handler only stores to an atomic, and the exit handler does not block.
    unsafe {
        libc::atexit(exited);
        libc::pthread_atfork(None, None, Some(forked));
    }
}
