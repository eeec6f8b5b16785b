//! A signal handler in the program that forwards to the previously installed handler, as signal
//! libraries do.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{mem, ptr};

static HANDLED: AtomicUsize = AtomicUsize::new(0);
/// The disposition replaced by the last `install`.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn on_signal(signal: c_int) {
    let previous = PREVIOUS.load(Relaxed);
    if previous != libc::SIG_DFL {
        // SAFETY: the replaced disposition is a handler with this signature.
        let previous: extern "C" fn(c_int) = unsafe { mem::transmute(previous) };
        previous(signal);
    }
    HANDLED.fetch_add(1, Relaxed);
}

fn address() -> usize {
    on_signal as extern "C" fn(c_int) as usize
}

pub fn install(signal: c_int) {
    // SAFETY: the handler makes only async-signal-safe calls.
    let previous = unsafe { libc::signal(signal, address()) };
    assert_ne!(previous, libc::SIG_ERR);
    PREVIOUS.store(previous, Relaxed);
}

/// Returns the number of signals handled.
pub fn handled() -> usize {
    HANDLED.load(Relaxed)
}

/// Returns `true` if `install` replaced an existing handler.
pub fn has_previous() -> bool {
    PREVIOUS.load(Relaxed) != libc::SIG_DFL
}

/// Returns `true` if this handler is still installed for `signal`.
pub fn is_installed(signal: c_int) -> bool {
    // SAFETY: all zeros is a valid value for this plain struct; the call only reads the current
    // disposition.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        assert_eq!(libc::sigaction(signal, ptr::null(), &raw mut now), 0);
        now.sa_sigaction == address()
    }
}

/// Sends a signal to this process.
pub fn raise(signal: c_int) {
    // SAFETY: sends a signal to this process.
    assert_eq!(unsafe { libc::kill(libc::getpid(), signal) }, 0);
}
