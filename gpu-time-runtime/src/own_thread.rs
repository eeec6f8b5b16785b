//! Threads of our own, which no signal is delivered to: signals are the program's.

#![allow(unsafe_code)] // the signal mask

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread;

/// Starts a thread of this name with all signals blocked.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // A thread begins with the mask of the one that starts it.
    // SAFETY: fills the one set, reads it, and writes the other.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: the set was written above: the call cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    spawned.map(drop)
}
