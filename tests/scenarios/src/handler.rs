//! A handler of the program's own, which hands on to what was there before, as libraries for signals
//! do.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{mem, ptr};

static HANDLED: AtomicUsize = AtomicUsize::new(0);
/// What was there before it was installed last.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn on_signal(signal: c_int) {
    let previous = PREVIOUS.load(Relaxed);
    if previous != libc::SIG_DFL {
        // SAFETY: what was set before is a handler of this signature.
        let previous: extern "C" fn(c_int) = unsafe { mem::transmute(previous) };
        previous(signal);
    }
    HANDLED.fetch_add(1, Relaxed);
}

fn address() -> usize {
    on_signal as extern "C" fn(c_int) as usize
}

pub fn install(signal: c_int) {
    // SAFETY: the handler only makes calls that it may.
    let previous = unsafe { libc::signal(signal, address()) };
    assert_ne!(previous, libc::SIG_ERR);
    PREVIOUS.store(previous, Relaxed);
}

/// How many signals it has had.
pub fn handled() -> usize {
    HANDLED.load(Relaxed)
}

/// Whether there was a handler before it.
pub fn has_previous() -> bool {
    PREVIOUS.load(Relaxed) != libc::SIG_DFL
}

/// Whether it is still what the signal is handled by.
pub fn is_installed(signal: c_int) -> bool {
    // SAFETY: all zeros are a value of this plain struct; changes nothing, and writes what is set.
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
