//! The signals that ask for a report, and those that end a process with no chance to leave anything.
//!
//! Neither a report nor NVML may be had from a handler, which can interrupt anything. So the handler
//! writes a byte to a thread that sleeps until one comes, and that thread makes the report, gives
//! locked clocks back, and lets the signal end the process as it would have.
//!
//! A signal is taken only where its disposition is the default, and the process is ended only if the
//! handler is still ours when the thread has read of it: one that the program has set over ours, and
//! that hands on to it, is not overruled by that. Whoever is not content to wait sends a second signal.
//! The kernel lets the default of no signal end the first process of a namespace, which a program in a
//! container often is: it goes on after the report.

#![allow(unsafe_code)] // signal dispositions

use std::ffi::c_int;
use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{background, clock};

const ENDING: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
const ASKING: c_int = libc::SIGUSR1;
/// The first process of its namespace.
const INIT: libc::pid_t = 1;

/// After this time a second signal ends the process at once: the report may be stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process whose thread listens, and where to write to it.
static LISTENER: AtomicI32 = AtomicI32::new(0);
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// When the first signal came that ends the process, in nanoseconds; 0 is never.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);
/// The process that reports when a signal comes.
static REPORTER: AtomicI32 = AtomicI32::new(0);
/// Taken by whoever changes dispositions.
static CHANGING: Mutex<()> = Mutex::new(Rank::SignalHandlers, ());

/// The functions that the listening thread calls.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    /// Makes a report while the process goes on.
    pub report: fn(),
    /// Makes the last report and gives locked clocks back.
    pub end: fn(),
    /// Gives locked clocks back.
    pub give_back: fn(),
}

static HANDLERS: OnceLock<Handlers> = OnceLock::new();

/// Takes the signals that end the process, where nobody else handles them.
pub(crate) fn watch(handlers: Handlers) -> io::Result<()> {
    HANDLERS.get_or_init(|| handlers);
    let _changing = locked(&CHANGING);
    listen()?;
    ENDING.into_iter().for_each(|signal| take(signal, on_signal));
    Ok(())
}

/// The same for as long as the process lives, to report before it ends, and when it is asked to.
#[cfg(feature = "signals")]
pub(crate) fn watch_to_report(handlers: Handlers) -> io::Result<()> {
    watch(handlers)?;
    let _changing = locked(&CHANGING);
    REPORTER.store(process(), Relaxed);
    take(ASKING, on_signal);
    Ok(())
}

/// Where timing is off for good: who asks for a report is told so, and does not end the process. Nobody
/// listens for that.
#[cfg(feature = "signals")]
pub(crate) fn watch_while_off() {
    take(ASKING, on_asked_while_off);
}

/// Gives the signals back, unless reports need them.
#[cfg(feature = "nvml")]
pub(crate) fn unwatch() {
    let _changing = locked(&CHANGING);
    if !is_reporter() {
        ENDING.into_iter().filter(|&signal| is_ours(signal)).for_each(|s| set(s, libc::SIG_DFL));
    }
}

fn take(signal: c_int, handler: extern "C" fn(c_int)) {
    if disposition(signal) == Some(libc::SIG_DFL) {
        set(signal, handler as *const () as usize);
    }
}

/// Starts the thread, unless this process has it: a fork does not copy it.
fn listen() -> io::Result<()> {
    let process = process();
    if LISTENER.load(Relaxed) == process {
        return Ok(());
    }
    let (from, to) = UnixStream::pair()?;
    // The handler must not wait for a thread that is at work. What does not fit is told twice.
    to.set_nonblocking(true)?;
    background::spawn("gpu-time-signals", move || wait(from))?;
    // Open for as long as the process lives, because the handler may run at any time.
    SOCKET.store(to.into_raw_fd(), Relaxed);
    LISTENER.store(process, Relaxed);
    Ok(())
}

fn wait(mut from: UnixStream) {
    let mut signals = [0; 64];
    loop {
        let came = match from.read(&mut signals) {
            Ok(came @ 1..) => signals.get(..came).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => return,
        };
        let mut came = came.to_vec();
        // Who asked twice before anybody answered gets one answer.
        came.dedup();
        came.into_iter().map(c_int::from).for_each(answer);
    }
}

fn answer(signal: c_int) {
    if signal != ASKING && !is_ours(signal) {
        FIRST_NS.store(0, Relaxed);
        return;
    }
    let Some(handlers) = HANDLERS.get() else { return };
    if goes_on(signal, process()) {
        if is_reporter() {
            (handlers.report)();
        }
        return;
    }
    if is_reporter() {
        (handlers.end)();
    } else {
        (handlers.give_back)();
    }
    end_by(signal);
}

/// Makes calls only that a handler may make.
extern "C" fn on_signal(signal: c_int) {
    keeping_errno(|| {
        if LISTENER.load(Relaxed) != process() || (!goes_on(signal, process()) && is_overdue()) {
            // In a forked child nobody listens, and nothing is locked.
            if is_ours(signal) {
                end_by(signal);
            }
        } else {
            let byte = signal as u8;
            // SAFETY: writes one byte that is there, to a socket that is never closed.
            unsafe { libc::write(SOCKET.load(Relaxed), ptr::from_ref(&byte).cast(), 1) };
        }
    });
}

/// The same.
#[cfg(feature = "signals")]
extern "C" fn on_asked_while_off(_: c_int) {
    const LINE: &str = "gpu-time: there is no report: timing is off by `GPU_TIME=off`\n";
    keeping_errno(|| {
        let mut stderr =
            libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
        // SAFETY: looks at one descriptor, without waiting.
        unsafe { libc::poll(&raw mut stderr, 1, 0) };
        // A pipe without a reader would raise a signal.
        if stderr.revents == libc::POLLOUT {
            // SAFETY: writes text that is there. A pipe that takes anything takes so little at once.
            unsafe { libc::write(stderr.fd, LINE.as_ptr().cast(), LINE.len()) };
        }
    });
}

/// Does what a handler is for, of which whatever it interrupted notices nothing.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: the thread's own error number.
    let (errno, before) = unsafe {
        let errno = libc::__errno_location();
        (errno, *errno)
    };
    work();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Whether such a process goes on after the signal, which then asks for no more than a report.
fn goes_on(signal: c_int, process: libc::pid_t) -> bool {
    signal == ASKING || process == INIT
}

/// Whether another signal was to end the process long enough ago.
fn is_overdue() -> bool {
    let now_ns = clock::now_ns();
    let first = FIRST_NS.compare_exchange(0, now_ns, Relaxed, Relaxed);
    first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) > PATIENCE.as_nanos() as u64)
}

/// Ends the process as the signal would have. In a handler that takes effect when it has returned.
fn end_by(signal: c_int) {
    set(signal, libc::SIG_DFL);
    // SAFETY: sends a signal to this process, whose default is to end it.
    unsafe { libc::kill(process(), signal) };
}

fn is_reporter() -> bool {
    REPORTER.load(Relaxed) == process()
}

fn is_ours(signal: c_int) -> bool {
    disposition(signal) == Some(on_signal as *const () as usize)
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
    // On the thread's other stack where it has one: its own may be small.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler is the default, or a function for as long as the process lives that makes
    // only calls that a handler may make.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_of_a_namespace_is_not_ended() {
        for signal in ENDING {
            assert!(goes_on(signal, INIT) && !goes_on(signal, 2));
        }
        assert!(goes_on(ASKING, INIT) && goes_on(ASKING, 2));
    }
}
