//! Switches CUPTI's recording on and off: the kinds of activity and the callbacks.
//!
//! Switching a kind of activity on and off takes up to 5 µs, so a window of recording switches only the kinds
//! that it needs: kernels at its start, another kind when the first call needs it. The callback of that call
//! comes early enough for the call to be recorded. Calls of the runtime itself switch nothing on, because CUPTI
//! 13.0 loses records of kernels on other threads once a long memset has been recorded. If the version cannot
//! stop recording, all kinds are switched on when recording starts.
//!
//! Callbacks are switched on once and stay on. CUPTI 13.0 and 13.5 call back less
//! and less if they are switched off and on while many threads launch.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::base::inside;
use crate::cupti::failures;
use crate::cupti::functions::Callback;
use crate::cupti::loads::{LOAD_LOCK, Permit};
use crate::cupti::records::{CONCURRENT_KERNEL, MEMCPY, MEMCPY2, MEMSET};
use crate::cupti::session::{INVALID_PARAMETER, SUCCESS, Session};
use crate::cupti::version::can_stop;

/// The kinds that are switched on when a call needs them.
const EXTRA: [u32; 3] = [MEMCPY, MEMSET, MEMCPY2];

/// The state of recording, which callbacks read and change.
#[derive(Debug)]
pub(super) struct Recording {
    is_on: AtomicBool,
    /// The kinds of [`EXTRA`] that are on. All are off between windows.
    extra: [AtomicBool; EXTRA.len()],
}

pub(super) static RECORDING: Recording = Recording::new();

impl Recording {
    pub const fn new() -> Recording {
        Recording {
            is_on: AtomicBool::new(false),
            extra: [const { AtomicBool::new(false) }; EXTRA.len()],
        }
    }

    /// Switches the callbacks of all launches on. Only one thread at a time may call this.
    ///
    /// # Errors
    ///
    /// CUPTI's error code.
    pub fn switch_callbacks_on(&self, session: &Session) -> Result<(), c_int> {
        for callback in Callback::all() {
            match session.switch_callback_on(callback.id()) {
                // Older versions do not know the newest functions.
                SUCCESS | INVALID_PARAMETER => {}
                code => return Err(code),
            }
        }
        Ok(())
    }

    /// Returns `true` while something is recorded or about to be.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(SeqCst)
    }

    /// Starts recording kernels, and all other kinds too if the version cannot stop. On an error, nothing is
    /// recorded. Only one thread at a time may start or stop recording.
    ///
    /// # Errors
    ///
    /// CUPTI's error code.
    pub fn start(&self, session: &Session, permit: &Permit) -> Result<(), c_int> {
        // Set this first, so that the launch of every recorded kernel is observed.
        self.is_on.store(true, SeqCst);
        let code = session.switch(permit, CONCURRENT_KERNEL, true);
        if code != SUCCESS {
            self.is_on.store(false, SeqCst);
            return Err(code);
        }
        if !can_stop(session.library.version) {
            // A kind that is refused now is asked for again by each call that needs it.
            self.enable_extra(session, permit, &EXTRA);
        }
        Ok(())
    }

    /// Stops recording. Returns `false` if CUPTI refuses and recording continues.
    pub fn stop(&self, session: &Session, permit: &Permit) -> bool {
        for (kind, is_on) in EXTRA.into_iter().zip(&self.extra) {
            if is_on.load(SeqCst) && !self.switch_off(session, permit, kind) {
                return false;
            }
            is_on.store(false, SeqCst);
        }
        self.is_on.store(false, SeqCst);
        // Switch kernels off last, as they are switched on first: CUPTI crashes if this kind is switched while
        // memsets are on and another thread calls one (seen with CUPTI 13.0 Update 1).
        let is_off = self.switch_off(session, permit, CONCURRENT_KERNEL);
        self.is_on.store(!is_off, SeqCst);
        is_off
    }

    /// Switches a kind off. Returns `false` if CUPTI refuses.
    fn switch_off(&self, session: &Session, permit: &Permit, kind: u32) -> bool {
        failures::is_success("stop recording", session.switch(permit, kind, false))
    }

    /// Switches on the kinds that a call needs. Called from the callback at the call's beginning. Returns `false`
    /// if a kind stays off, because another thread is loading code or because CUPTI refuses.
    pub fn on_call(&self, callback: Callback, session: Option<&Session>) -> bool {
        let kinds = callback.kinds();
        // Calls of the runtime itself, such as flushes of the L2, need no records.
        if kinds.is_empty() || !self.is_on() || inside::is_inside() {
            return true;
        }
        let Some(session) = session else { return true };
        let _inside = inside::enter();
        if self.have(kinds) {
            return true;
        }
        let Some(permit) = LOAD_LOCK.permit() else { return false };
        // Another thread may have ended the window before this one got `permit`. It cannot end the window from
        // here on.
        !self.is_on() || self.enable_extra(session, &permit, kinds)
    }

    /// Returns `true` if all of these kinds are on.
    fn have(&self, kinds: &[u32]) -> bool {
        let mut extra = EXTRA.into_iter().zip(&self.extra);
        extra.all(|(kind, is_on)| !kinds.contains(&kind) || is_on.load(SeqCst))
    }

    /// Switches on these kinds of [`EXTRA`]. Returns `false` if CUPTI refuses one.
    fn enable_extra(&self, session: &Session, permit: &Permit, kinds: &[u32]) -> bool {
        for (kind, is_on) in EXTRA.into_iter().zip(&self.extra) {
            if kinds.contains(&kind) && !is_on.load(SeqCst) {
                let request = if kind == MEMSET { "record memsets" } else { "record copies" };
                let code = session.switch(permit, kind, true);
                is_on.store(failures::is_success(request, code), SeqCst);
            }
        }
        self.have(kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cupti::session::fake::{self, Call};

    fn callback(id: u32) -> Callback {
        Callback::with_id(id).unwrap()
    }

    /// Returns the right to switch. Always succeeds, because no test loads code through the shared state.
    fn permit() -> Permit {
        LOAD_LOCK.permit().unwrap()
    }

    const KERNELS: Call = Call::Enable(CONCURRENT_KERNEL);
    const NO_KERNELS: Call = Call::Disable(CONCURRENT_KERNEL);

    #[test]
    fn windows_switch_no_callbacks() {
        let (session, recording) = (fake::session(), Recording::new());
        assert_eq!(recording.switch_callbacks_on(&session), Ok(()));
        assert_eq!(fake::calls().len(), Callback::all().count());
        assert_eq!(recording.start(&session, &permit()), Ok(()));
        recording.on_call(callback(307), Some(&session));
        assert!(recording.stop(&session, &permit()));
        assert_eq!(fake::calls(), [KERNELS, NO_KERNELS]);
    }

    #[test]
    fn first_call_switches_kinds_on() {
        let (session, recording) = (fake::session(), Recording::new());
        for _ in 0..2 {
            recording.start(&session, &permit()).unwrap();
            fake::calls();
            recording.on_call(callback(279), Some(&session));
            recording.on_call(callback(277), Some(&session));
            assert_eq!(fake::calls(), [Call::Enable(MEMCPY)]);
            recording.on_call(callback(514), Some(&session));
            assert_eq!(fake::calls(), [Call::Enable(MEMSET)]);
            recording.stop(&session, &permit());
            // Kernels must be last, or CUPTI crashes.
            let kinds = [Call::Disable(MEMCPY), Call::Disable(MEMSET), NO_KERNELS];
            assert_eq!(fake::calls(), kinds);
        }
    }

    #[test]
    fn memsets_of_the_runtime_switch_nothing_on() {
        let (session, recording) = (fake::session(), Recording::new());
        recording.start(&session, &permit()).unwrap();
        fake::calls();
        let inside = inside::enter();
        assert!(recording.on_call(callback(220), Some(&session)));
        assert_eq!(fake::calls(), []);
        drop(inside);
        recording.on_call(callback(220), Some(&session));
        assert_eq!(fake::calls(), [Call::Enable(MEMSET)]);
    }

    #[test]
    fn kernels_stay_on_while_memsets_cannot_be_switched_off() {
        let (session, recording) = (fake::session(), Recording::new());
        recording.start(&session, &permit()).unwrap();
        recording.on_call(callback(514), Some(&session));
        fake::calls();
        fake::refuse(Call::Disable(MEMSET), 1);
        assert!(!recording.stop(&session, &permit()));
        assert!(!fake::calls().contains(&NO_KERNELS));
        fake::refuse(Call::Disable(MEMSET), SUCCESS);
        assert!(recording.stop(&session, &permit()));
        assert!(fake::calls().starts_with(&[Call::Disable(MEMSET), NO_KERNELS]));
    }

    #[test]
    fn recording_goes_on_while_kernels_cannot_be_switched_off() {
        let (session, recording) = (fake::session(), Recording::new());
        recording.start(&session, &permit()).unwrap();
        fake::refuse(NO_KERNELS, 1);
        assert!(!recording.stop(&session, &permit()));
        assert!(recording.is_on());
        fake::refuse(NO_KERNELS, SUCCESS);
        assert!(recording.stop(&session, &permit()));
        assert!(!recording.is_on());
    }

    #[test]
    fn refused_kind_does_not_keep_window_open() {
        let (session, recording) = (fake::session(), Recording::new());
        recording.start(&session, &permit()).unwrap();
        fake::refuse(Call::Enable(MEMSET), 1);
        assert!(!recording.on_call(callback(514), Some(&session)));
        assert!(recording.on_call(callback(277), Some(&session)));
        fake::calls();
        assert!(recording.stop(&session, &permit()));
        let stopped = fake::calls();
        assert!(stopped.contains(&NO_KERNELS) && !stopped.contains(&Call::Disable(MEMSET)));
    }

    #[test]
    fn version_that_cannot_stop_gets_all_kinds_at_once() {
        let (session, recording) = (fake::session_of(28), Recording::new());
        recording.start(&session, &permit()).unwrap();
        let kinds = [CONCURRENT_KERNEL, MEMCPY, MEMSET, MEMCPY2].map(Call::Enable);
        assert_eq!(fake::calls(), kinds);
        recording.on_call(callback(277), Some(&session));
        assert_eq!(fake::calls(), []);
    }

    /// Otherwise, CUPTI could record a kernel whose launch was not observed.
    #[test]
    fn launches_are_observed_before_kernels_are_recorded() {
        static RECORDING: Recording = Recording::new();
        static WAS_ON: AtomicBool = AtomicBool::new(false);
        fake::before(KERNELS, || WAS_ON.store(RECORDING.is_on(), SeqCst));
        RECORDING.start(&fake::session(), &permit()).unwrap();
        assert!(WAS_ON.load(SeqCst));
    }

    #[test]
    fn calls_between_windows_switch_nothing_on() {
        let (session, recording) = (fake::session(), Recording::new());
        assert!(recording.on_call(callback(277), Some(&session)));
        assert_eq!(fake::calls(), []);
    }

    #[test]
    fn refused_start_records_nothing() {
        let (session, recording) = (fake::session(), Recording::new());
        fake::refuse(KERNELS, 39);
        assert_eq!(recording.start(&session, &permit()), Err(39));
        fake::calls();
        recording.on_call(callback(277), Some(&session));
        assert_eq!(fake::calls(), []);
    }
}
