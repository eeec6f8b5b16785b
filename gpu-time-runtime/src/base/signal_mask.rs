//! Blocks signals in the calling thread for a while.

#![allow(unsafe_code)] // signal masks

use std::ffi::c_int;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// The signals that a failing write raises in its thread. By default they end the process.
const RAISED_BY_WRITES: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Signals that are blocked in the calling thread until this value is dropped, on the same thread.
pub(crate) struct BlockedSignals {
    before: libc::sigset_t,
    /// Signals to discard if they are pending at the end.
    discarded: Option<libc::sigset_t>,
    stays_on_thread: PhantomData<*const ()>,
}

impl BlockedSignals {
    /// Blocks every signal. Threads that are started meanwhile inherit the mask.
    pub fn all() -> BlockedSignals {
        BlockedSignals {
            before: changed(libc::SIG_SETMASK, &all()),
            discarded: None,
            stays_on_thread: PhantomData,
        }
    }

    /// Blocks the signals that a failing write raises, and discards them at the end: the write also returns
    /// an error.
    pub fn raised_by_writes() -> BlockedSignals {
        let before = changed(libc::SIG_BLOCK, &set_of(RAISED_BY_WRITES));
        let mut pending = set_of([]);
        // SAFETY: writes the set.
        unsafe { libc::sigpending(&raw mut pending) };
        // SAFETY: reads an initialised set.
        let is_pending = |signal| unsafe { libc::sigismember(&raw const pending, signal) == 1 };
        // A signal that was already pending is the program's own.
        let ours = set_of(RAISED_BY_WRITES.into_iter().filter(|signal| !is_pending(*signal)));
        BlockedSignals { before, discarded: Some(ours), stays_on_thread: PhantomData }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        if let Some(discarded) = &self.discarded {
            let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: takes pending signals of an initialised set, without waiting.
            while unsafe { libc::sigtimedwait(discarded, ptr::null_mut(), &raw const no_time) } > 0
                || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        changed(libc::SIG_SETMASK, &self.before);
    }
}

/// Returns the set of all signals.
pub(crate) fn all() -> libc::sigset_t {
    let mut all = set_of([]);
    // SAFETY: writes the set.
    unsafe { libc::sigfillset(&raw mut all) };
    all
}

/// Returns the set of these signals, which must be valid.
fn set_of(signals: impl IntoIterator<Item = c_int>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Changes the calling thread's mask, and returns the one before.
fn changed(how: c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = set_of([]);
    // SAFETY: reads one set and writes the other; cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pending(signal: c_int) -> bool {
        let mut pending = set_of([]);
        // SAFETY: writes and reads an initialised set.
        unsafe {
            libc::sigpending(&raw mut pending);
            libc::sigismember(&raw const pending, signal) == 1
        }
    }

    fn raise(signal: c_int) {
        // SAFETY: the signal is blocked in this thread.
        assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), signal) }, 0);
    }

    #[test]
    fn raised_signal_is_discarded() {
        for signal in RAISED_BY_WRITES {
            let blocked = BlockedSignals::raised_by_writes();
            raise(signal);
            assert!(is_pending(signal));
            // By default, the signal would end the process here.
            drop(blocked);
            assert!(!is_pending(signal));
        }
    }

    #[test]
    fn signal_pending_before_is_kept() {
        let outer = BlockedSignals::raised_by_writes();
        raise(libc::SIGXFSZ);
        drop(BlockedSignals::raised_by_writes());
        assert!(is_pending(libc::SIGXFSZ));
        drop(outer);
        assert!(!is_pending(libc::SIGXFSZ));
    }
}
