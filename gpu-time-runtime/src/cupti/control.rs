//! The switch that starts and stops recording, and the reason why CUPTI cannot be used.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{console, fork, inside, room, switches};
use crate::cupti::library::{self, Library};
use crate::cupti::loads;
use crate::cupti::recording::{RECORDING, Recording};
use crate::cupti::session::{self, Session};
use crate::cupti::subscribe::{refusal, subscribe};
use crate::cupti::version::can_stop;

const UNTRIED: u8 = 0;
const AVAILABLE: u8 = 1;
const UNAVAILABLE: u8 = 2;

/// The outcome of the last attempt. Written under the lock of [`CONTROL`].
static STATE: AtomicU8 = AtomicU8::new(UNTRIED);
static LIBRARY: OnceLock<Result<&'static Library, String>> = OnceLock::new();
static CONTROL: Mutex<Control> = Mutex::new(Rank::Cupti, Control::new(&RECORDING));

/// The longest time that an opened call waits for other threads to finish loading code.
const PATIENCE: Duration = Duration::from_millis(1);
const ATTEMPTS: u32 = 8;

struct Control {
    recording: &'static Recording,
    /// The reason for [`UNAVAILABLE`].
    why: Option<String>,
    /// The number of [`SwitchedOn`] that exist. Recording is on while there is one, and may be for longer.
    guards: usize,
    is_recording: bool,
}

impl Control {
    const fn new(recording: &'static Recording) -> Control {
        Control { recording, why: None, guards: 0, is_recording: false }
    }

    /// Loads the library, subscribes, and stores the outcome.
    fn attempt(&mut self) {
        let library = LIBRARY.get_or_init(library::load).as_ref();
        let subscribed = library.map_err(Clone::clone).and_then(|library| match session::get() {
            Some(_) => Ok(()),
            None => subscribe(library).map(session::set),
        });
        self.store(subscribed);
    }

    fn store(&mut self, outcome: Result<(), String>) {
        let state = if outcome.is_ok() { AVAILABLE } else { UNAVAILABLE };
        self.why = outcome.err();
        STATE.store(state, Release);
    }

    /// Starts recording. Returns `false` while other threads load code.
    ///
    /// # Errors
    ///
    /// One sentence about what CUPTI answered.
    fn start(&mut self, session: &Session) -> Result<bool, String> {
        let Some(alone) = loads::alone() else { return Ok(false) };
        let started = self.recording.start(session, &alone);
        self.is_recording = started.is_ok();
        started.map_err(|code| refusal(session.library, code, ""))?;
        Ok(true)
    }

    /// Stops recording. While other threads load code, or if CUPTI refuses, it goes on until the next time; with
    /// a version that cannot stop, until the process ends.
    fn stop(&mut self, session: &Session) {
        if !can_stop(session.library.version) {
            return;
        }
        if let Some(alone) = loads::alone() {
            self.is_recording = !self.recording.stop(session, &alone);
        }
    }

    /// Adds a guard. The first one starts recording. Returns `false` while other threads load code.
    ///
    /// # Errors
    ///
    /// One sentence about what CUPTI answered. CUPTI is then unavailable until the next report
    /// tries again.
    fn switch_on(&mut self, session: &Session) -> Result<bool, String> {
        if !self.is_recording
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
        // While the process ends, CUPTI may be gone.
        if self.guards == 0 && !switches::is_closed() {
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
    // The lock may be held for ever in a child, and CUPTI must not be loaded while the process ends.
    if switches::is_closed() {
        return false;
    }
    room::with_room(|| {
        let mut control = locked(&CONTROL);
        if STATE.load(Relaxed) == UNTRIED {
            control.attempt();
        }
    });
    STATE.load(Acquire) == AVAILABLE
}

/// Returns one sentence about what is missing and how to provide it, or about who holds CUPTI.
/// `None` if it is available or was not needed so far.
pub(crate) fn why_unavailable() -> Option<String> {
    if fork::is_forked() {
        return None;
    }
    locked(&CONTROL).why.clone()
}

/// Returns the version of the library, from `cuptiGetVersion`, if one was loaded.
pub(crate) fn version() -> Option<u32> {
    LIBRARY.get()?.as_ref().ok().map(|library| library.version)
}

/// Tries again to subscribe and to record, if another tool prevented it.
pub(crate) fn retry() {
    if STATE.load(Acquire) != UNAVAILABLE || switches::is_closed() {
        return;
    }
    room::with_room(|| {
        let mut control = locked(&CONTROL);
        control.attempt();
        if let (None, Some(session)) = (&control.why, session::get())
            && control.guards == 0
        {
            let started = control.start(session);
            if control.is_recording {
                control.stop(session);
            }
            control.store(started.map(drop));
        }
    });
}

/// Keeps the recording of kernels, copies and memsets switched on, and has launches noted.
#[derive(Debug)]
#[must_use]
pub(crate) struct SwitchedOn(());

/// Switches recording on for the whole process. `None` if CUPTI is unavailable or refuses, or while other
/// threads load code.
pub(crate) fn switch_on() -> Option<SwitchedOn> {
    static HAS_BEEN_ON: AtomicBool = AtomicBool::new(false);
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !is_available() || switches::is_closed() {
        return None;
    }
    let session = session::get()?;
    let start = || {
        // Another load may begin after those that were waited for.
        for _ in 0..ATTEMPTS {
            loads::wait(PATIENCE);
            let started = locked(&CONTROL).switch_on(session);
            if started != Ok(false) || loads::are_long() {
                return started;
            }
        }
        Ok(false)
    };
    // The first time takes milliseconds, and stack.
    let started = if HAS_BEEN_ON.load(Relaxed) { start() } else { room::with_room(start) };
    HAS_BEEN_ON.store(true, Relaxed);
    match started {
        Ok(true) => Some(SwitchedOn(())),
        Ok(false) => None,
        Err(why) => {
            if !IS_SAID.swap(true, Relaxed) {
                console::complain(why);
            }
            None
        }
    }
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        // A thread may end inside of an opened call, if the program has leaked its guard.
        let _inside = inside::enter();
        // None in a forked child, in which another thread may have held the lock.
        if let Some(session) = session::get() {
            locked(&CONTROL).switch_off(session);
        }
    }
}

/// Stops recording if it has gone on after the last guard. Returns `true` if it still goes on.
pub(crate) fn stop_unused() -> bool {
    let Some(session) = session::get() else { return false };
    // If another thread holds the lock, the next time is soon enough.
    let Ok(mut control) = CONTROL.try_lock() else { return false };
    if control.guards > 0 || switches::is_closed() {
        return false;
    }
    if control.is_recording {
        control.stop(session);
    }
    control.is_recording
}

/// Returns `true` while CUPTI records, also after the last guard.
pub(crate) fn is_recording() -> bool {
    RECORDING.is_on()
}

/// Returns `true` if CUPTI records until the process ends, because its version cannot stop.
pub(crate) fn never_stops() -> bool {
    is_recording() && version().is_some_and(|version| !can_stop(version))
}

/// Returns the time in nanoseconds on the clock of the records.
pub(crate) fn now_ns() -> u64 {
    let host = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_nanos() as u64
    };
    session::get().and_then(Session::now_ns).unwrap_or_else(host)
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

    /// CUPTI 12 may wait for ever if it stops.
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
        assert!(control.is_recording);
    }

    #[test]
    fn refused_guard_does_not_count_and_says_why() {
        let session = fake::session();
        let mut control = control();
        fake::refuse(Call::Enable(CONCURRENT_KERNEL), 39);
        let why = control.switch_on(&session).unwrap_err();
        assert_eq!(why, "another tool holds CUPTI: run without it to record kernels");
        assert_eq!((control.guards, control.why), (0, Some(why)));
    }
}
