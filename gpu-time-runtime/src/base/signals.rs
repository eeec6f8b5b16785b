//! Handles the signals that ask for a report or a phase, and those that end the process.
//!
//! A handler may interrupt anything, so it can neither make a report nor call NVML. It notes the signal and wakes a
//! thread. The thread makes the report, gives locked clocks back, and then lets the signal end the process with its
//! default action. While a handler runs, all other signals wait: a thread's alternate stack has room for one or two
//! handlers.
//!
//! A signal is handled only if its disposition is the default. The thread ends the process only if
//! the handler is still installed by then: an application that has installed its own meanwhile,
//! which forwards the signal to ours, decides for itself. A second signal more than [`PATIENCE`]
//! later ends the process at once. Another runtime in the process, as in a plugin, finds a disposition that is not
//! the default, and handles no signals.
//!
//! The crate `signal-hook` cannot do this. An application that uses it too shares its handler, which hides that the
//! application has installed its own. It never restores a disposition, and lets its handlers interrupt each other.
//!
//! The kernel ignores the default action of signals for the first process of a PID namespace, which a
//! program in a container often is. Such a process goes on after the report.

#![allow(unsafe_code)] // signal dispositions

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
#[cfg(feature = "signals")]
use std::sync::atomic::AtomicU8;
use std::sync::atomic::{
    AtomicI32, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
#[cfg(feature = "signals")]
use crate::base::standard::Standard;
use crate::base::{background, clock, signal_mask};

/// Signals that end the process.
const END_SIGNALS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
/// The signal that asks for a report.
const REPORT_SIGNAL: c_int = libc::SIGUSR1;
/// The signal that begins a phase of recording.
const PHASE_SIGNAL: c_int = libc::SIGUSR2;
/// Signals that ask for something and do not end the process.
const REQUESTS: &[c_int] =
    if cfg!(feature = "kernels") { &[REPORT_SIGNAL, PHASE_SIGNAL] } else { &[REPORT_SIGNAL] };
/// All handled signals.
const SIGNALS: [c_int; 5] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, REPORT_SIGNAL, PHASE_SIGNAL];
/// The id of the first process in a PID namespace.
const INIT: libc::pid_t = 1;

/// A second signal after this time ends the process at once: the report may be stuck.
const PATIENCE: Duration = Duration::from_secs(1);

/// The functions that the listening thread calls.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    /// Makes a report while the process goes on.
    pub report: fn(),
    /// Begins a phase of recording.
    pub record_phase: fn(),
    /// Makes the last report and gives locked clocks back.
    pub end: fn(),
    /// Gives locked clocks back.
    pub give_back: fn(),
}

/// The state of signal handling. The signal handler uses only the atomics.
struct SignalState {
    /// Held while dispositions change.
    changing: Mutex<()>,
    handlers: OnceLock<Handlers>,
    /// The id of the process that has the listening thread.
    listener: AtomicI32,
    /// The times at which the signals in [`SIGNALS`] came that the thread has not taken yet, in nanoseconds; 0 for
    /// the others. Requests that are repeated before they are answered get a single answer.
    came_ns: [AtomicU64; SIGNALS.len()],
    /// The number of signals that came, for which the listening thread waits.
    came: AtomicU32,
    /// The time of the first signal that ends the process, in nanoseconds; 0 before it.
    first_ns: AtomicU64,
    /// The id of the process that reports on signals.
    reporter: AtomicI32,
    /// A [`NothingYet`].
    #[cfg(feature = "signals")]
    nothing: AtomicU8,
}

static STATE: SignalState = SignalState {
    changing: Mutex::new(Rank::SignalHandlers, ()),
    handlers: OnceLock::new(),
    listener: AtomicI32::new(0),
    came_ns: [const { AtomicU64::new(0) }; SIGNALS.len()],
    came: AtomicU32::new(0),
    first_ns: AtomicU64::new(0),
    reporter: AtomicI32::new(0),
    #[cfg(feature = "signals")]
    nothing: AtomicU8::new(0),
};

impl SignalState {
    /// Notes that a signal came, and wakes the thread. Async-signal-safe.
    fn note(&self, signal: c_int) {
        let slot = SIGNALS.iter().zip(&self.came_ns).find(|(handled, _)| **handled == signal);
        if let Some((_, came_ns)) = slot {
            // Keeps the time of an earlier one.
            _ = came_ns.compare_exchange(0, clock::now_ns(), Relaxed, Relaxed);
        }
        self.came.fetch_add(1, Release);
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: wakes the thread that waits for this number to change, if it does.
        unsafe { libc::syscall(libc::SYS_futex, self.came.as_ptr(), operation, 1) };
    }

    /// Waits until more than this number of signals came. May return earlier.
    fn wait(&self, came: u32) {
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        let no_timeout = ptr::null::<libc::timespec>();
        // SAFETY: waits unless the number has already changed.
        unsafe { libc::syscall(libc::SYS_futex, self.came.as_ptr(), operation, came, no_timeout) };
    }

    /// Takes the signals that came, in their order.
    fn take(&self) -> impl Iterator<Item = c_int> {
        let take = |(signal, came_ns): (c_int, &AtomicU64)| (came_ns.swap(0, Relaxed), signal);
        let mut came: Vec<_> = SIGNALS.into_iter().zip(&self.came_ns).map(take).collect();
        came.sort_unstable();
        came.into_iter().filter(|(came_ns, _)| *came_ns > 0).map(|(_, signal)| signal)
    }

    /// Returns `true` if this process has the listening thread.
    fn is_listening(&self) -> bool {
        self.listener.load(Relaxed) == process()
    }

    /// Returns `true` if this process reports on signals.
    fn is_reporter(&self) -> bool {
        self.reporter.load(Relaxed) == process()
    }

    /// Returns `true` if the first signal that should have ended the process came more than [`PATIENCE`] ago.
    /// Notes the time if this is the first one.
    fn is_overdue(&self) -> bool {
        let now_ns = clock::now_ns();
        let first = self.first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
        first.is_err_and(|first_ns| now_ns.saturating_sub(first_ns) > PATIENCE.as_nanos() as u64)
    }
}

/// Handles the signals that end the process, except those that the application handles.
pub(crate) fn watch(handlers: Handlers) -> io::Result<()> {
    STATE.handlers.get_or_init(|| handlers);
    let _changing = locked(&STATE.changing);
    // A fork does not copy the thread.
    if !STATE.is_listening() {
        background::spawn("gpu-time-signals", answer_all)?;
        STATE.listener.store(process(), Relaxed);
    }
    install_where_default(&END_SIGNALS, on_signal);
    Ok(())
}

/// Handles the signals that end the process or ask for a report or a phase, for the rest of the process. The
/// last report is made before the process ends.
#[cfg(feature = "signals")]
pub(crate) fn watch_to_report(handlers: Handlers) -> io::Result<()> {
    watch(handlers)?;
    let _changing = locked(&STATE.changing);
    STATE.reporter.store(process(), Relaxed);
    for &signal in REQUESTS.iter().filter(|signal| is_by(**signal, on_asked_for_nothing)) {
        set(signal, on_signal as *const () as usize);
    }
    install_where_default(REQUESTS, on_signal);
    Ok(())
}

/// Why there is nothing to report yet, or at all.
#[cfg(feature = "signals")]
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum NothingYet {
    /// No annotated function has been called.
    NoCall,
    /// `GPU_TIME` turns timing off.
    Off,
}

/// Answers requests for a report or a phase with a line on stderr, until [`watch_to_report`] answers them. Without a
/// handler, these signals would end the process. Needs no thread.
#[cfg(feature = "signals")]
pub(crate) fn watch_for_nothing(why: NothingYet) {
    STATE.nothing.fetch_max(why as u8, Relaxed);
    install_where_default(REQUESTS, on_asked_for_nothing);
}

/// Restores the default dispositions, unless reports need the handlers.
#[cfg(feature = "nvml")]
pub(crate) fn unwatch() {
    let _changing = locked(&STATE.changing);
    if !STATE.is_reporter() {
        let ours = END_SIGNALS.into_iter().filter(|signal| is_ours(*signal));
        ours.for_each(|signal| set(signal, libc::SIG_DFL));
    }
}

fn install_where_default(signals: &[c_int], handler: extern "C" fn(c_int)) {
    for &signal in signals {
        if disposition(signal) == Some(libc::SIG_DFL) {
            set(signal, handler as *const () as usize);
        }
    }
}

fn answer_all() {
    loop {
        let came = STATE.came.load(Acquire);
        STATE.take().for_each(answer);
        STATE.wait(came);
    }
}

fn answer(signal: c_int) {
    if !REQUESTS.contains(&signal) && !is_ours(signal) {
        STATE.first_ns.store(0, Relaxed);
        return;
    }
    if let Some(handlers) = STATE.handlers.get() {
        match (goes_on(signal, process()), STATE.is_reporter()) {
            (true, true) if signal == PHASE_SIGNAL => (handlers.record_phase)(),
            (true, true) => (handlers.report)(),
            (true, false) => {}
            (false, true) => (handlers.end)(),
            (false, false) => (handlers.give_back)(),
        }
    }
    if !goes_on(signal, process()) {
        end_by(signal);
    }
}

/// The signal handler. Makes only calls that are async-signal-safe.
extern "C" fn on_signal(signal: c_int) {
    keeping_errno(|| {
        if !STATE.is_listening() || (!goes_on(signal, process()) && STATE.is_overdue()) {
            // There is nothing to wait for: a forked child has no listening thread and no locked clocks,
            // and an overdue report may be stuck.
            if is_ours(signal) {
                end_by(signal);
            }
        } else {
            STATE.note(signal);
        }
    });
}

/// The handler of [`watch_for_nothing`]. Makes only calls that are async-signal-safe.
#[cfg(feature = "signals")]
extern "C" fn on_asked_for_nothing(signal: c_int) {
    if !is_by(signal, on_asked_for_nothing) {
        // A handler of the program's has taken over, and passes the signal on.
        return;
    }
    const LINES: [[&str; 2]; 2] = [
        [
            "gpu-time: no report: no annotated function has been called so far\n",
            "gpu-time: no phase: no annotated function has been called so far\n",
        ],
        [
            "gpu-time: no report: timing is off (`GPU_TIME=off`)\n",
            "gpu-time: no phase: timing is off (`GPU_TIME=off`)\n",
        ],
    ];
    let is_off = STATE.nothing.load(Relaxed) == NothingYet::Off as u8;
    let line = LINES[usize::from(is_off)][usize::from(signal == PHASE_SIGNAL)];
    keeping_errno(|| {
        let mut stderr =
            libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
        // SAFETY: polls one descriptor without waiting.
        unsafe { libc::poll(&raw mut stderr, 1, 0) };
        // Writing to a pipe without a reader would raise SIGPIPE.
        if stderr.revents == libc::POLLOUT && Standard::Stderr.is_intact() {
            // SAFETY: writes a static text. A pipe that is ready accepts this few bytes without blocking.
            unsafe { libc::write(stderr.fd, line.as_ptr().cast(), line.len()) };
        }
    });
}

/// Runs the work of a handler and restores `errno` for the interrupted code.
fn keeping_errno(work: impl FnOnce()) {
    // SAFETY: reads the thread's own `errno`.
    let (errno, before) = unsafe {
        let errno = libc::__errno_location();
        (errno, *errno)
    };
    work();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Returns `true` if this process goes on after the signal, which then only asks for a report or a phase.
fn goes_on(signal: c_int, process: libc::pid_t) -> bool {
    REQUESTS.contains(&signal) || process == INIT
}

/// Ends the process with the default action of the signal. If called in the signal's handler, this takes
/// effect when the handler returns.
fn end_by(signal: c_int) {
    set(signal, libc::SIG_DFL);
    // SAFETY: sends this process a signal whose action was reset to the default.
    unsafe { libc::kill(process(), signal) };
}

fn is_ours(signal: c_int) -> bool {
    is_by(signal, on_signal)
}

/// Returns `true` if this handler is installed.
fn is_by(signal: c_int, handler: extern "C" fn(c_int)) -> bool {
    disposition(signal) == Some(handler as *const () as usize)
}

fn process() -> libc::pid_t {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() }
}

/// Returns the current disposition of a signal.
fn disposition(signal: c_int) -> Option<libc::sighandler_t> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: changes nothing, and writes the current action.
    let answer = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    // SAFETY: `sigaction` initialised it if it succeeded.
    (answer == 0).then(|| unsafe { now.assume_init() }.sa_sigaction)
}

fn set(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: all zeros are a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_mask = signal_mask::all();
    // Use the thread's alternate stack if it has one, because its own may be small.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler is the default action, or a function that exists as long as the process and
    // makes only async-signal-safe calls.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_process_of_namespace_goes_on() {
        for signal in END_SIGNALS {
            assert!(goes_on(signal, INIT) && !goes_on(signal, 2));
        }
        for &signal in REQUESTS {
            assert!(goes_on(signal, INIT) && goes_on(signal, 2));
        }
    }
}
