//! The signals that end a process with no chance to give anything back.
//!
//! NVML may not be called from a handler, which can interrupt NVML itself. So the handler writes a
//! byte into a pipe, and a thread that sleeps at its other end gives the clocks back and lets the
//! signal end the process as it would have.
//!
//! A signal is taken only where its disposition is the default, and the process is ended only if it
//! is the default again when the thread has read of it, which the handler's own first run makes it
//! (`SA_RESETHAND`). A handler that the program has set over ours, and that hands on to it, is not
//! overruled by that; a second signal ends the process at once.

#![allow(unsafe_code)] // signal dispositions

use std::ffi::c_int;
use std::io::{self, PipeReader, Read};
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread;

use super::locks;
use crate::site::locked;

const ENDING: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// The process whose thread listens, and where to write to it.
static LISTENER: AtomicI32 = AtomicI32::new(0);
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Takes the signals that nobody else handles.
pub(super) fn watch() -> io::Result<()> {
    listen()?;
    for signal in ENDING {
        if disposition(signal) == Some(libc::SIG_DFL) {
            set(signal, on_signal as *const () as usize);
        }
    }
    Ok(())
}

/// Gives the signals back.
pub(super) fn unwatch() {
    for signal in ENDING {
        if disposition(signal) == Some(on_signal as *const () as usize) {
            set(signal, libc::SIG_DFL);
        }
    }
}

/// Starts the thread, unless this process has it: a fork does not copy it.
fn listen() -> io::Result<()> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = locked(&STARTING);
    let process = process();
    if LISTENER.load(Relaxed) == process {
        return Ok(());
    }
    let (from, to) = io::pipe()?;
    thread::Builder::new().name("gpu-time-clocks".to_owned()).spawn(move || wait(from))?;
    // Open for as long as the process lives, because the handler may run at any time.
    PIPE.store(to.into_raw_fd(), Relaxed);
    LISTENER.store(process, Relaxed);
    Ok(())
}

fn wait(mut from: PipeReader) {
    let mut signal = [0];
    while from.read_exact(&mut signal).is_ok() {
        let signal = c_int::from(signal[0]);
        if disposition(signal) == Some(libc::SIG_DFL) {
            locks::give_back();
            // SAFETY: sends a signal to this process, whose default is to end it.
            unsafe { libc::kill(process(), signal) };
        }
    }
}

/// Makes calls only that a handler may make.
extern "C" fn on_signal(signal: c_int) {
    if LISTENER.load(Relaxed) == process() {
        let byte = signal as u8;
        // SAFETY: writes one byte that is there, to a pipe that is never closed, and leaves the
        // thread's error number to whatever was interrupted.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::write(PIPE.load(Relaxed), ptr::from_ref(&byte).cast(), 1);
            *errno = before;
        }
    } else if disposition(signal) == Some(libc::SIG_DFL) {
        // A forked child, in which nobody listens and nothing is locked.
        // SAFETY: takes effect when this handler has returned.
        unsafe { libc::raise(signal) };
    }
}

fn process() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// What a signal does now.
fn disposition(signal: c_int) -> Option<libc::sighandler_t> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: changes nothing, and writes what is set.
    let answer = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    // SAFETY: written, if it succeeded.
    (answer == 0).then(|| unsafe { now.assume_init() }.sa_sigaction)
}

fn set(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: all zeros are a value of this plain struct: no flags, no signals blocked.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
    // SAFETY: the handler is the default, or a function for as long as the process lives that makes
    // only calls that a handler may make.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}
