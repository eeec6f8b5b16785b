//! The process's subscription to CUPTI, and the calls that use it.

use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::base::fork;
use crate::cupti::library::{DRIVER_API, Library, Shared, Subscriber};
use crate::cupti::loads::Permit;

pub(super) const SUCCESS: c_int = 0;
/// The result for a callback id that the version does not know.
pub(super) const INVALID_PARAMETER: c_int = 1;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
const FORCED: u32 = 1;

/// A subscription to CUPTI. Its memory stays when it has ended, because CUPTI may be calling back.
pub(super) struct Session {
    pub library: &'static Library,
    pub subscriber: Subscriber,
    /// The functions to use instead if other tools may subscribe too.
    pub shared: Option<&'static Shared>,
}

// SAFETY: CUPTI's functions are thread-safe, except for the one that switches callbacks, whose callers
// hold a lock. The subscriber is a handle that only CUPTI dereferences.
unsafe impl Send for Session {}
// SAFETY: see above.
unsafe impl Sync for Session {}

static SESSION: OnceLock<Session> = OnceLock::new();
/// The subscription has been given up.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Returns the subscription of the process, if there is one and this is not a forked child.
#[inline]
pub(super) fn get() -> Option<&'static Session> {
    SESSION.get().filter(|_| !has_ended() && !fork::is_forked())
}

/// Returns `true` once the subscription has been given up.
pub(super) fn has_ended() -> bool {
    HAS_ENDED.load(Relaxed)
}

/// Ends the subscription of the process for good. Returns `false` if CUPTI refuses. Nothing may be recorded.
pub(super) fn end(session: &Session, _: &Permit) -> bool {
    // Set first, so that no other thread uses the subscription from here on.
    HAS_ENDED.store(true, Relaxed);
    // SAFETY: the subscriber is valid. A callback that runs on another thread uses nothing of it.
    let code = unsafe { (session.library.functions.unsubscribe)(session.subscriber) };
    HAS_ENDED.store(code == SUCCESS, Relaxed);
    code == SUCCESS
}

/// Stores the subscription of the process. Only the first call has an effect.
pub(super) fn set(session: Session) {
    _ = SESSION.set(session);
}

impl Session {
    /// Switches a kind of activity on or off. Returns CUPTI's code.
    pub fn switch(&self, _: &Permit, kind: u32, on: bool) -> c_int {
        let (functions, kind) = (&self.library.functions, kind as c_int);
        // SAFETY: the subscriber is valid.
        unsafe {
            match self.shared {
                Some(shared) => {
                    let switch = if on { shared.enable } else { shared.disable };
                    switch(self.subscriber, kind, ptr::null_mut())
                }
                None => (if on { functions.enable } else { functions.disable })(kind),
            }
        }
    }

    /// Switches the callback for a driver function on. Returns CUPTI's code. Only one thread at a time may call
    /// this.
    pub fn switch_callback_on(&self, id: u32) -> c_int {
        // SAFETY: the subscriber is valid.
        unsafe { (self.library.functions.enable_callback)(1, self.subscriber, DRIVER_API, id) }
    }

    /// Makes CUPTI complete the buffers whose records are all complete or, with `forced`, all buffers.
    /// Does not wait for the GPU. Returns CUPTI's code: after an error, records may be missing.
    pub fn flush(&self, _: &Permit, forced: bool) -> c_int {
        // SAFETY: the buffer callbacks are registered.
        unsafe { (self.library.functions.flush)(if forced { FORCED } else { 0 }) }
    }

    /// Returns the record after `last`, or the first record if `last` is null, in a buffer with `bytes`
    /// bytes.
    ///
    /// # Safety
    ///
    /// CUPTI must have completed the buffer, and `last` must be null or a record in it.
    pub unsafe fn next_record(
        &self,
        buffer: *mut u8,
        bytes: usize,
        last: *mut u8,
    ) -> Option<*mut u8> {
        let mut record = last;
        // SAFETY: guaranteed by the caller.
        let code = unsafe {
            match self.shared {
                Some(shared) => {
                    (shared.next_record)(self.subscriber, buffer, bytes, &raw mut record)
                }
                None => (self.library.functions.next_record)(buffer, bytes, &raw mut record),
            }
        };
        (code == SUCCESS && !record.is_null()).then_some(record)
    }

    /// Returns the number of records that CUPTI has dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: writes one number. A null context means all contexts.
        let code = unsafe {
            match self.shared {
                Some(shared) => {
                    (shared.dropped)(self.subscriber, ptr::null_mut(), 0, &raw mut dropped)
                }
                None => (self.library.functions.dropped)(ptr::null_mut(), 0, &raw mut dropped),
            }
        };
        if code == SUCCESS { dropped as u64 } else { 0 }
    }

    /// Returns the time in nanoseconds, on the clock that the records use.
    pub fn now_ns(&self) -> Option<u64> {
        let mut now = 0;
        // SAFETY: writes one number.
        let code = unsafe { (self.library.functions.timestamp)(&raw mut now) };
        (code == SUCCESS).then_some(now)
    }
}

/// A fake library that logs the calls of each thread.
#[cfg(test)]
pub(super) mod fake {
    use std::cell::{Cell, RefCell};
    use std::ffi::{c_char, c_void};

    use super::*;
    use crate::cupti::library::{ApiCallback, Complete, Functions, Request};

    /// The size of every record.
    pub const RECORD_BYTES: usize = 200;
    const MAX_LIMIT_REACHED: c_int = 12;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Call {
        Enable(u32),
        Disable(u32),
        Observe(u32),
    }

    type Before = (Call, fn());

    thread_local! {
        static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
        static REFUSED: Cell<Option<(Call, c_int)>> = const { Cell::new(None) };
        static BEFORE: Cell<Option<Before>> = const { Cell::new(None) };
    }

    /// Returns the calls on this thread since the last call of this function.
    pub fn calls() -> Vec<Call> {
        CALLS.take()
    }

    /// Makes this call return `code` from now on, on this thread.
    pub fn refuse(call: Call, code: c_int) {
        REFUSED.set(Some((call, code)));
    }

    /// Runs `then` before each such call from now on, on this thread.
    pub fn before(call: Call, then: fn()) {
        BEFORE.set(Some((call, then)));
    }

    fn note(call: Call) -> c_int {
        if let Some((_, then)) = BEFORE.get().filter(|(before, _)| *before == call) {
            then();
        }
        CALLS.with_borrow_mut(|calls| calls.push(call));
        REFUSED.get().filter(|(refused, _)| *refused == call).map_or(SUCCESS, |(_, code)| code)
    }

    pub fn session() -> Session {
        session_of(130_000)
    }

    /// Returns a session with this version of CUPTI.
    pub fn session_of(version: u32) -> Session {
        unsafe extern "C" fn subscribe(
            _: *mut Subscriber,
            _: ApiCallback,
            _: *mut c_void,
        ) -> c_int {
            SUCCESS
        }
        unsafe extern "C" fn unsubscribe(_: Subscriber) -> c_int {
            SUCCESS
        }
        unsafe extern "C" fn enable_callback(_: u32, _: Subscriber, _: c_int, id: u32) -> c_int {
            note(Call::Observe(id))
        }
        unsafe extern "C" fn enable(kind: c_int) -> c_int {
            note(Call::Enable(kind as u32))
        }
        unsafe extern "C" fn disable(kind: c_int) -> c_int {
            note(Call::Disable(kind as u32))
        }
        unsafe extern "C" fn register(_: Request, _: Complete) -> c_int {
            SUCCESS
        }
        unsafe extern "C" fn flush(_: u32) -> c_int {
            SUCCESS
        }
        unsafe extern "C" fn next_record(
            buffer: *mut u8,
            bytes: usize,
            last: *mut *mut u8,
        ) -> c_int {
            // SAFETY: the buffer has `bytes` bytes, and the last record is one of its records.
            unsafe {
                let next = if (*last).is_null() { buffer } else { (*last).add(RECORD_BYTES) };
                if next.addr() >= buffer.addr() + bytes {
                    return MAX_LIMIT_REACHED;
                }
                last.write(next);
            }
            SUCCESS
        }
        unsafe extern "C" fn dropped(_: *mut c_void, _: u32, _: *mut usize) -> c_int {
            INVALID_PARAMETER
        }
        unsafe extern "C" fn timestamp(_: *mut u64) -> c_int {
            INVALID_PARAMETER
        }
        unsafe extern "C" fn result_string(_: c_int, _: *mut *const c_char) -> c_int {
            INVALID_PARAMETER
        }
        let functions = Functions {
            subscribe,
            unsubscribe,
            enable_callback,
            enable,
            disable,
            register,
            flush,
            next_record,
            dropped,
            timestamp,
            result_string,
        };
        let library = Box::leak(Box::new(Library { version, functions, shared: None }));
        Session { library, subscriber: ptr::null_mut(), shared: None }
    }
}
