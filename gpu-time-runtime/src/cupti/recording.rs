//! Starts and stops recording.
//!
//! Every kind and every callback takes time to switch on and off: up to 5 µs for a kind and 0.3 µs for
//! a callback. A window of recording therefore switches only what it needs.
//!
//! - Kernels are recorded from the beginning. The other kinds are switched on by the first call that needs
//!   them, in its callback, which comes early enough for that call to be recorded. Calls of the runtime
//!   itself do not: CUPTI 13.0 loses records of kernels on other threads once a long memset was recorded.
//! - The callback of a function that was never called costs nothing, so it stays on. From the end of the
//!   window in which the function is called, or which follows, it is off between windows.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use crate::base::inside;
use crate::cupti::functions::Callback;
use crate::cupti::loads::{self, Alone};
use crate::cupti::records::{CONCURRENT_KERNEL, MEMCPY, MEMCPY2, MEMSET};
use crate::cupti::session::{INVALID_PARAMETER, SUCCESS, Session};

/// The kinds that are switched on when they are needed.
const EXTRA: [u32; 3] = [MEMCPY, MEMSET, MEMCPY2];

/// A set of callbacks, by their numbers.
pub(super) type Set = u128;

/// The parts of the recording that callbacks change.
#[derive(Debug)]
pub(super) struct Recording {
    is_on: AtomicBool,
    /// The kinds of [`EXTRA`] that are on. None is between windows.
    extra: [AtomicBool; EXTRA.len()],
    /// The set of callbacks that were called.
    called: [AtomicU64; 2],
}

pub(super) static RECORDING: Recording = Recording::new();

impl Recording {
    const fn new() -> Recording {
        Recording {
            is_on: AtomicBool::new(false),
            extra: [const { AtomicBool::new(false) }; EXTRA.len()],
            called: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Switches all callbacks on, once for each session.
    ///
    /// # Errors
    ///
    /// The code of CUPTI.
    pub fn prepare(&self, session: &Session) -> Result<(), c_int> {
        let codes = Callback::all().map(|callback| session.switch_callback(callback.id(), true));
        // Older versions lack the newest functions.
        succeeded(codes.map(|code| if code == INVALID_PARAMETER { SUCCESS } else { code }))
    }

    /// Starts recording. `off` has the callbacks that are off, and is then empty. On an error
    /// nothing is recorded. Only one thread at a time may start or stop.
    ///
    /// # Errors
    ///
    /// The code of CUPTI.
    pub fn start(&self, session: &Session, alone: &Alone, off: &mut Set) -> Result<(), c_int> {
        // Callbacks first, so that every record has had one.
        while let Some(callback) = Callback::with_number(off.trailing_zeros()) {
            succeeded([session.switch_callback(callback.id(), true)])?;
            *off &= !bit(callback);
        }
        succeeded([session.enable(alone, CONCURRENT_KERNEL)])?;
        self.is_on.store(true, SeqCst);
        Ok(())
    }

    /// Stops recording, and switches off the callbacks of functions that are called, which `off`
    /// then has. Returns `false` if recording goes on, because CUPTI refused.
    pub fn stop(&self, session: &Session, alone: &Alone, off: &mut Set) -> bool {
        for (kind, is_on) in EXTRA.into_iter().zip(&self.extra) {
            if is_on.load(SeqCst) && session.disable(alone, kind) != SUCCESS {
                return false;
            }
            is_on.store(false, SeqCst);
        }
        self.is_on.store(false, SeqCst);
        // Last, as it is first in `start`: CUPTI crashes if this kind is switched while that of memsets is on
        // and another thread calls one (seen with CUPTI 13.0 Update 1).
        // There is nothing to do about an error, and records are told apart by their ids anyway.
        _ = session.disable(alone, CONCURRENT_KERNEL);
        self.quiet(session, alone, off);
        true
    }

    /// Switches off the callbacks of functions that are called. Between windows.
    pub fn quiet(&self, session: &Session, _: &Alone, off: &mut Set) {
        let called = self.called();
        let mut on = called & !*off;
        while let Some(callback) = Callback::with_number(on.trailing_zeros()) {
            _ = session.switch_callback(callback.id(), false);
            on &= !bit(callback);
        }
        *off = called;
    }

    /// Returns the callbacks of functions that are called.
    pub fn called(&self) -> Set {
        let [low, high] = &self.called;
        Set::from(low.load(Relaxed)) | Set::from(high.load(Relaxed)) << 64
    }

    /// Notes a call that begins, and switches the kinds on that it needs. From its callback. Returns `false`
    /// if one stays off, because another thread is loading code.
    pub fn on_call(&self, callback: Callback, session: Option<&Session>) -> bool {
        let number = callback.number();
        if let Some(called) = self.called.get((number / 64) as usize) {
            let bit = 1 << (number % 64);
            if called.load(Relaxed) & bit == 0 {
                called.fetch_or(bit, Relaxed);
            }
        }
        let kinds = callback.kinds();
        // The runtime's own memsets, which flush the L2, belong to no call.
        if kinds.is_empty() || !self.is_on.load(SeqCst) || inside::is_inside() {
            return true;
        }
        let Some(session) = session else { return true };
        let _inside = inside::enter();
        for (kind, is_on) in EXTRA.into_iter().zip(&self.extra) {
            if !kinds.contains(&kind) || is_on.load(SeqCst) {
                continue;
            }
            // Records that are missing because of an error are noticed as never delivered.
            let Some(alone) = loads::alone() else { return false };
            // Another thread may have ended the window before this one was alone, and cannot from here on.
            if !self.is_on.load(SeqCst) {
                return true;
            }
            is_on.store(session.enable(&alone, kind) == SUCCESS, SeqCst);
        }
        true
    }
}

fn bit(callback: Callback) -> Set {
    1 << callback.number()
}

/// Returns the first error.
fn succeeded(codes: impl IntoIterator<Item = c_int>) -> Result<(), c_int> {
    codes.into_iter().find(|&code| code != SUCCESS).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cupti::session::fake::{self, Call};

    fn callback(id: u32) -> Callback {
        Callback::with_id(id).unwrap()
    }

    /// Tests run one at a time as far as this matters, and none loads code.
    fn alone() -> Alone {
        loads::alone().unwrap()
    }

    const KERNELS: Call = Call::Enable(CONCURRENT_KERNEL);
    const NO_KERNELS: Call = Call::Disable(CONCURRENT_KERNEL);

    #[test]
    fn window_switches_only_what_is_called() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        assert_eq!(recording.prepare(&session), Ok(()));
        assert_eq!(fake::calls().len(), Callback::all().count());
        assert_eq!(recording.start(&session, &alone(), &mut off), Ok(()));
        assert_eq!(fake::calls(), [KERNELS]);
        recording.on_call(callback(307), Some(&session));
        recording.on_call(callback(307), Some(&session));
        assert_eq!(fake::calls(), []);
        recording.stop(&session, &alone(), &mut off);
        assert_eq!(fake::calls(), [NO_KERNELS, Call::Callback(307, false)]);
        assert_eq!(recording.start(&session, &alone(), &mut off), Ok(()));
        assert_eq!(fake::calls(), [Call::Callback(307, true), KERNELS]);
    }

    #[test]
    fn kinds_are_switched_on_by_the_first_call_that_needs_them() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        for _ in 0..2 {
            recording.start(&session, &alone(), &mut off).unwrap();
            fake::calls();
            recording.on_call(callback(279), Some(&session));
            recording.on_call(callback(277), Some(&session));
            assert_eq!(fake::calls(), [Call::Enable(MEMCPY)]);
            recording.on_call(callback(514), Some(&session));
            assert_eq!(fake::calls(), [Call::Enable(MEMSET)]);
            recording.stop(&session, &alone(), &mut off);
            let stopped = fake::calls();
            // Kernels last, or CUPTI fails.
            let kinds = [Call::Disable(MEMCPY), Call::Disable(MEMSET), NO_KERNELS];
            assert_eq!(stopped[..3], kinds, "{stopped:?}");
        }
    }

    #[test]
    fn memsets_of_the_runtime_switch_nothing_on() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        recording.start(&session, &alone(), &mut off).unwrap();
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
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        recording.start(&session, &alone(), &mut off).unwrap();
        recording.on_call(callback(514), Some(&session));
        fake::calls();
        fake::refuse(Call::Disable(MEMSET), 1);
        assert!(!recording.stop(&session, &alone(), &mut off));
        assert!(!fake::calls().contains(&NO_KERNELS));
        fake::refuse(Call::Disable(MEMSET), SUCCESS);
        assert!(recording.stop(&session, &alone(), &mut off));
        assert!(fake::calls().starts_with(&[Call::Disable(MEMSET), NO_KERNELS]));
    }

    #[test]
    fn kind_that_cannot_be_switched_on_does_not_keep_the_window_open() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        recording.start(&session, &alone(), &mut off).unwrap();
        fake::refuse(Call::Enable(MEMSET), 1);
        recording.on_call(callback(514), Some(&session));
        fake::calls();
        assert!(recording.stop(&session, &alone(), &mut off));
        let stopped = fake::calls();
        assert!(stopped.contains(&NO_KERNELS) && !stopped.contains(&Call::Disable(MEMSET)));
    }

    #[test]
    fn calls_between_windows_switch_nothing_on() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        recording.on_call(callback(277), Some(&session));
        assert_eq!(fake::calls(), []);
        recording.quiet(&session, &alone(), &mut off);
        assert_eq!(fake::calls(), [Call::Callback(277, false)]);
        recording.quiet(&session, &alone(), &mut off);
        assert_eq!(fake::calls(), []);
    }

    #[test]
    fn refused_start_records_nothing() {
        let (session, recording, mut off) = (fake::session(), Recording::new(), 0);
        fake::refuse(KERNELS, 39);
        assert_eq!(recording.start(&session, &alone(), &mut off), Err(39));
        fake::calls();
        recording.on_call(callback(277), Some(&session));
        assert_eq!(fake::calls(), []);
    }
}
