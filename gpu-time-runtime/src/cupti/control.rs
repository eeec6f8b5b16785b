//! Starts and stops recording, and keeps the reason if CUPTI cannot be used.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::base::lock::{Mutex, Rank, locked, locked_by, try_locked};
use crate::base::{at_exit, background, console, fork, inside, switches};
use crate::cupti::failures;
use crate::cupti::gate::GATE;
use crate::cupti::launches;
use crate::cupti::library::{self, Library};
use crate::cupti::loads::LOAD_LOCK;
use crate::cupti::recording::{RECORDING, Recording};
use crate::cupti::session::{self, Session};
use crate::cupti::subscribe::{CuptiError, refusal, subscribe};
use crate::cupti::version::{self, can_stop};

/// The longest time that a report waits for another thread that is in CUPTI.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);

const UNTRIED: u8 = 0;
const AVAILABLE: u8 = 1;
const UNAVAILABLE: u8 = 2;

/// The outcome of the last attempt to use CUPTI. Written while [`CONTROL`] is locked.
static STATE: AtomicU8 = AtomicU8::new(UNTRIED);
static LIBRARY: OnceLock<Result<&'static Library, String>> = OnceLock::new();
/// Set before recording is switched on for the first time.
static HAS_RECORDED: AtomicBool = AtomicBool::new(false);
static CONTROL: Mutex<Control> = Mutex::new(Rank::Cupti, Control::new(&RECORDING));

/// The maximum time that each attempt to switch recording on waits for other threads to finish loading code.
const PATIENCE: Duration = Duration::from_millis(1);
const ATTEMPTS: u32 = 8;
/// The same for the last attempt to stop recording.
const LAST_PATIENCE: Duration = Duration::from_millis(200);
/// The time from the subscription to the first switch. A call that loads code and began before the subscription
/// had no callback, so it is not known to be under way. Only those that take longer remain a hazard.
const UNSEEN_LOADS: Duration = Duration::from_millis(10);

struct Control {
    recording: &'static Recording,
    /// The reason for [`UNAVAILABLE`].
    why: Option<String>,
    /// The number of existing [`RecordingGuard`] guards. Recording is on while there is at least one, and may
    /// continue for longer.
    guards: usize,
}

impl Control {
    const fn new(recording: &'static Recording) -> Control {
        Control { recording, why: None, guards: 0 }
    }

    /// Loads the library and subscribes, unless that has been done, and stores the outcome.
    fn attempt(&mut self) {
        // The outcome for the library that is chosen: the first that works, or the first of all.
        let mut tried = None;
        let library = LIBRARY.get_or_init(|| {
            library::load(|library| {
                let subscribed = subscribe(library);
                let works = !subscribed.as_ref().is_err_and(CuptiError::is_misfit);
                if works || tried.is_none() {
                    tried = Some(subscribed);
                }
                works
            })
        });
        let subscribed = library.as_ref().map_err(Clone::clone).and_then(|library| {
            if session::get().is_some() {
                return Ok(());
            }
            let subscribed = tried.unwrap_or_else(|| subscribe(library));
            subscribed.map(session::set).map_err(|error| error.why)?;
            // Nothing is switched before this returns, because the caller has locked the state.
            thread::sleep(UNSEEN_LOADS);
            Ok(())
        });
        self.store(subscribed);
    }

    fn store(&mut self, outcome: Result<(), String>) {
        let state = if outcome.is_ok() { AVAILABLE } else { UNAVAILABLE };
        self.why = outcome.err();
        STATE.store(state, Release);
    }

    /// Starts recording. Returns `false` if another thread is loading code.
    ///
    /// # Errors
    ///
    /// One sentence that describes CUPTI's error.
    fn start(&mut self, session: &Session) -> Result<bool, String> {
        let Some(permit) = LOAD_LOCK.permit() else { return Ok(false) };
        let refused = |code| refusal(session.library, code, "").why;
        let is_first = !HAS_RECORDED.swap(true, Relaxed);
        let started = self.recording.start(session, &permit);
        if is_first {
            // CUPTI frees its tables in exit handlers that it has registered by now.
            at_exit::register();
        }
        started.map_err(refused)?;
        Ok(true)
    }

    /// Stops recording. If another thread is loading code, or if CUPTI refuses, recording continues until the
    /// next attempt. With a version that cannot stop, it continues until the process ends.
    fn stop(&mut self, session: &Session) {
        if !can_stop(session.library.version) {
            return;
        }
        if let Some(permit) = LOAD_LOCK.permit() {
            self.recording.stop(session, &permit);
        }
    }

    /// Adds a guard. The first one starts recording. Returns `false` if another thread is loading code.
    ///
    /// # Errors
    ///
    /// One sentence that describes CUPTI's error. CUPTI is then unavailable until the next report tries again.
    fn switch_on(&mut self, session: &Session) -> Result<bool, String> {
        if !self.recording.is_on()
            && !self.start(session).inspect_err(|why| self.store(Err(why.clone())))?
        {
            return Ok(false);
        }
        self.guards += 1;
        Ok(true)
    }

    /// Removes a guard. The last one stops recording.
    fn switch_off(&mut self, session: &Session) {
        self.guards -= 1;
        // Recording has already been stopped if the process is ending.
        if self.guards == 0 && self.recording.is_on() {
            self.stop(session);
        }
    }
}

/// Returns `true` if kernels can be recorded. Loads CUPTI and subscribes on the first call.
#[inline]
pub(crate) fn is_available() -> bool {
    match STATE.load(Acquire) {
        UNTRIED => is_available_now(),
        state => state == AVAILABLE && !fork::is_forked(),
    }
}

#[cold]
fn is_available_now() -> bool {
    // In a forked child, the lock may be held forever. Once timing is closed, CUPTI must not be loaded.
    if switches::is_closed() {
        return false;
    }
    background::aside(|| {
        let mut control = locked(&CONTROL);
        if STATE.load(Relaxed) == UNTRIED
            && let Some(_entry) = GATE.enter()
        {
            control.attempt();
        }
    });
    STATE.load(Acquire) == AVAILABLE
}

/// Returns `true` if CUPTI is in use, so that kernels can be recorded without loading it.
pub(crate) fn is_in_use() -> bool {
    STATE.load(Acquire) == AVAILABLE && !fork::is_forked()
}

/// Returns one sentence that says what is missing and how to provide it, or which tool holds CUPTI. Returns
/// `None` if CUPTI is available or has not been needed so far.
pub(crate) fn why_unavailable() -> Option<String> {
    if fork::is_forked() {
        return None;
    }
    match locked_by(&CONTROL, Instant::now() + REPORT_PATIENCE) {
        Some(control) => control.why.clone(),
        None => Some("CUPTI does not answer".to_owned()),
    }
}

/// Returns the version of the loaded library, as returned by `cuptiGetVersion`.
pub(crate) fn version() -> Option<u32> {
    LIBRARY.get()?.as_ref().ok().map(|library| library.version)
}

/// Tries again to subscribe and to record, if that has failed: another tool may have released CUPTI.
pub(crate) fn retry() {
    if STATE.load(Acquire) != UNAVAILABLE || switches::is_closed() || session::has_ended() {
        return;
    }
    background::aside(|| {
        let mut control = locked(&CONTROL);
        // Checked again, because recording must not be started after it was ended.
        let Some(_entry) = GATE.enter().filter(|_| !switches::is_closed()) else { return };
        control.attempt();
        if let (None, Some(session)) = (&control.why, session::get())
            && control.guards == 0
        {
            let started = control.start(session);
            if control.recording.is_on() {
                control.stop(session);
            }
            control.store(started.map(drop));
        }
    });
}

/// A guard that keeps recording on: CUPTI records kernels, copies and memsets, and the launch observer is
/// called.
#[derive(Debug)]
#[must_use]
pub(crate) struct RecordingGuard(());

/// Switches recording on for the whole process. Returns `None` if CUPTI is unavailable or refuses, or if other
/// threads are loading code for too long.
pub(crate) fn switch_on() -> Option<RecordingGuard> {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !is_available() || switches::is_closed() {
        return None;
    }
    let session = session::get()?;
    let start = || {
        // While this thread waits for loads to end, another one may begin.
        for _ in 0..ATTEMPTS {
            LOAD_LOCK.wait(PATIENCE);
            let mut control = locked(&CONTROL);
            // Checked again, because recording must not be started after it was ended.
            let started =
                if switches::is_closed() { return Ok(false) } else { control.switch_on(session) };
            drop(control);
            if started != Ok(false) || LOAD_LOCK.have_timed_out() {
                return started;
            }
        }
        Ok(false)
    };
    // The first time takes milliseconds and needs a large stack.
    let started = if has_recorded() { start() } else { background::aside(start) };
    match started {
        Ok(true) => Some(RecordingGuard(())),
        Ok(false) => None,
        Err(why) => {
            if !IS_SAID.swap(true, Relaxed) {
                console::complain(why);
            }
            None
        }
    }
}

impl Drop for RecordingGuard {
    fn drop(&mut self) {
        // The caller may be outside the runtime: a thread that has leaked the guard of an opened call drops this
        // when it ends.
        let _inside = inside::enter();
        // `None` in a forked child, where the lock may be held forever.
        if let Some(session) = session::get() {
            locked(&CONTROL).switch_off(session);
        }
    }
}

/// Stops recording if it has continued after the last guard was dropped.
pub(crate) fn stop_unused() {
    let Some(session) = session::get() else { return };
    // If another thread holds the lock, the next call is soon enough.
    if let Some(mut control) = try_locked(&CONTROL)
        && control.guards == 0
        && control.recording.is_on()
    {
        control.stop(session);
    }
}

/// Ends the subscription, so that another tool can have it. Then nothing can be recorded any more. Returns `false` if
/// that is not possible now: something is recorded, or another thread loads code.
pub(crate) fn give_up() -> bool {
    let Some(session) = session::get() else { return true };
    let Some(_entry) = GATE.enter() else { return false };
    let mut control = locked(&CONTROL);
    if control.guards > 0 || switches::is_closed() {
        return false;
    }
    if control.recording.is_on() {
        control.stop(session);
    }
    let Some(permit) = LOAD_LOCK.permit().filter(|_| !control.recording.is_on()) else {
        return false;
    };
    let has_ended = session::end(session, &permit);
    if has_ended {
        STATE.store(UNAVAILABLE, Release);
    }
    has_ended
}

/// Returns `true` once the subscription has ended.
pub(crate) fn is_given_up() -> bool {
    session::has_ended()
}

/// Stops recording for good, although there may be guards: no one collects records during process exit. Must be
/// called after [`switches::close`].
pub(crate) fn end(deadline: Instant) {
    let Some(session) = session::get() else { return };
    LOAD_LOCK.wait(LAST_PATIENCE);
    // Without launches there is nothing to record, and the driver may have ended.
    if launches::have_begun()
        && let Some(mut control) = locked_by(&CONTROL, deadline)
        && control.recording.is_on()
    {
        control.stop(session);
    }
}

/// Waits until no other thread of the runtime is in CUPTI, or until the deadline, and lets none in from now on.
/// Must be called before the exit handler returns, because CUPTI's own handler runs next.
pub(crate) fn leave(deadline: Instant) {
    GATE.close(deadline);
}

/// Returns one sentence that describes the first error that has cost records. CUPTI is in use nevertheless.
pub(crate) fn first_failure() -> Option<String> {
    let library = LIBRARY.get()?.as_ref().ok()?;
    let _entry = GATE.enter()?;
    failures::describe(library)
}

/// Returns `true` once recording has been switched on.
pub(crate) fn has_recorded() -> bool {
    HAS_RECORDED.load(Relaxed)
}

/// Returns `true` while CUPTI records, even if no guard exists.
pub(crate) fn is_recording() -> bool {
    RECORDING.is_on()
}

/// Returns `true` if CUPTI is recording and will continue until the process ends, because its version cannot
/// stop.
pub(crate) fn never_stops() -> bool {
    is_recording() && version().is_some_and(|version| !can_stop(version))
}

/// Returns the host time in nanoseconds that recording adds to this many launches.
pub(crate) fn cost_ns(launches: usize) -> u64 {
    // A version that never stops takes as much from all launches of the process.
    if never_stops() { 0 } else { launches as u64 * version().map_or(0, version::launch_cost_ns) }
}

/// Returns the time in nanoseconds, on the clock that CUPTI's records use.
pub(crate) fn now_ns() -> u64 {
    let host = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_nanos() as u64
    };
    let of_cupti = || {
        let _entry = GATE.enter()?;
        session::get()?.now_ns()
    };
    of_cupti().unwrap_or_else(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cupti::records::CONCURRENT_KERNEL;
    use crate::cupti::session::fake::{self, Call};

    fn control() -> Control {
        Control::new(Box::leak(Box::new(Recording::new())))
    }

    #[test]
    fn only_first_and_last_guard_switch() {
        let session = fake::session();
        let mut control = control();
        for _ in 0..2 {
            assert_eq!(control.switch_on(&session), Ok(true));
            assert_eq!(fake::calls(), [Call::Enable(CONCURRENT_KERNEL)]);
            assert_eq!(control.switch_on(&session), Ok(true));
            control.switch_off(&session);
            assert_eq!(fake::calls(), []);
            control.switch_off(&session);
            assert_eq!(fake::calls(), [Call::Disable(CONCURRENT_KERNEL)]);
        }
    }

    /// CUPTI 12 may deadlock when it stops recording.
    #[test]
    fn old_version_records_until_the_end() {
        let session = fake::session_of(28);
        let mut control = control();
        for is_first in [true, false] {
            assert_eq!(control.switch_on(&session), Ok(true));
            assert_eq!(fake::calls().contains(&Call::Enable(CONCURRENT_KERNEL)), is_first);
            control.switch_off(&session);
            assert_eq!(fake::calls(), []);
        }
        assert!(control.recording.is_on());
    }

    #[test]
    fn refused_guard_does_not_count_and_says_why() {
        let session = fake::session();
        let mut control = control();
        fake::refuse(Call::Enable(CONCURRENT_KERNEL), 39);
        let why = control.switch_on(&session).unwrap_err();
        assert!(why.starts_with("another tool "), "{why}");
        assert_eq!((control.guards, control.why), (0, Some(why)));
    }
}
