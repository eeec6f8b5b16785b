//! Background threads of the runtime.

#![allow(unsafe_code)] // the signal mask

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread;

use crate::base::inside;

/// Starts a thread with every signal blocked, so that signals still go to the application's threads.
///
/// # Errors
///
/// The error of the operating system if it cannot create a thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let spawn = || {
        thread::Builder::new().name(name.to_owned()).spawn(|| {
            let _inside = inside::enter();
            run();
        })
    };
    with_signals_blocked(spawn).map(drop)
}

/// Runs `create` with every signal blocked. A new thread inherits the signal mask of the thread that
/// creates it.
pub(crate) fn with_signals_blocked<R>(create: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises `all`; `pthread_sigmask` reads it and initialises `before`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let created = create();
    // SAFETY: `before` was initialised above; the call cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    created
}
