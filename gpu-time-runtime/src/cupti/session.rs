//! The subscription to CUPTI.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::cupti::buffers::{on_complete, on_request, on_shared_complete, on_shared_request, pool};
use crate::cupti::launches::{DRIVER_API, callback_ids, on_call};
use crate::cupti::library::{Library, Shared, Subscriber, SubscriberParams};
use crate::cupti::records::KINDS;

const SUCCESS: c_int = 0;
/// The result for a callback id that the version does not have.
const INVALID_PARAMETER: c_int = 1;
/// The result while another tool is the only subscriber.
const HELD: c_int = 39;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
const FORCED: u32 = 1;
/// The size that the name of another subscriber fits into.
const NAME_BYTES: usize = 64;

/// The one subscription of the process. It is never given up, because CUPTI may call back at any time.
pub(super) struct Session {
    library: &'static Library,
    subscriber: Subscriber,
    /// The functions to use if other tools may subscribe too.
    shared: Option<&'static Shared>,
}

// SAFETY: CUPTI's functions are thread-safe, except for those that switch callbacks, whose callers hold a
// lock. The subscriber is a handle that only CUPTI looks into.
unsafe impl Send for Session {}
// SAFETY: see above.
unsafe impl Sync for Session {}

impl Session {
    /// Subscribes with callbacks and the pool of buffers. The error is one sentence about who holds CUPTI or
    /// what it answered.
    pub fn new(library: &'static Library) -> Result<Session, String> {
        let session = subscribe(library)?;
        // The callbacks must find it.
        pool();
        // SAFETY: the callbacks have CUPTI's types and are never unloaded.
        let code = unsafe {
            match session.shared {
                Some(shared) => {
                    (shared.register)(session.subscriber, on_shared_request, on_shared_complete)
                }
                None => (library.functions.register)(on_request, on_complete),
            }
        };
        if code == SUCCESS {
            return Ok(session);
        }
        // SAFETY: the subscriber is valid, and has no callbacks that could be running.
        unsafe { (library.functions.unsubscribe)(session.subscriber) };
        Err(refusal(library, code, ""))
    }

    /// Switches the launch callbacks and the activity kinds on. On an error all of them are off.
    ///
    /// # Errors
    ///
    /// One sentence about what CUPTI answered. The caller must hold a lock.
    pub fn start(&self) -> Result<(), String> {
        // Callbacks first, so that every record has had one.
        let callbacks = callback_ids().map(|id| match self.switch_callback(id, true) {
            INVALID_PARAMETER => SUCCESS,
            code => code,
        });
        // SAFETY: the session's subscriber is valid.
        let kinds = KINDS.iter().map(|&kind| unsafe {
            match self.shared {
                Some(shared) => (shared.enable)(self.subscriber, kind as c_int, ptr::null_mut()),
                None => (self.library.functions.enable)(kind as c_int),
            }
        });
        match callbacks.chain(kinds).find(|&code| code != SUCCESS) {
            None => Ok(()),
            Some(code) => {
                self.stop();
                Err(refusal(self.library, code, ""))
            }
        }
    }

    /// Switches everything off again. The caller must hold a lock.
    pub fn stop(&self) {
        // There is nothing to do about an error, and the records are told apart by their ids anyway.
        for &kind in &KINDS {
            // SAFETY: the session's subscriber is valid.
            _ = unsafe {
                match self.shared {
                    Some(shared) => {
                        (shared.disable)(self.subscriber, kind as c_int, ptr::null_mut())
                    }
                    None => (self.library.functions.disable)(kind as c_int),
                }
            };
        }
        for id in callback_ids() {
            _ = self.switch_callback(id, false);
        }
    }

    fn switch_callback(&self, id: u32, on: bool) -> c_int {
        // SAFETY: the session's subscriber is valid, and the caller holds a lock.
        unsafe {
            (self.library.functions.enable_callback)(on.into(), self.subscriber, DRIVER_API, id)
        }
    }

    /// Makes CUPTI complete the buffers whose records are complete, or all of them. Does not wait for the
    /// GPU.
    pub fn flush(&self, forced: bool) {
        // SAFETY: the buffer callbacks are registered. An error means that nothing was completed.
        _ = unsafe { (self.library.functions.flush)(if forced { FORCED } else { 0 }) };
    }

    /// Returns the record after `last`, or the first if `last` is null, in a buffer with this many bytes.
    ///
    /// # Safety
    ///
    /// CUPTI must have completed the buffer, and `last` must be from it.
    pub unsafe fn next_record(
        &self,
        buffer: *mut u8,
        bytes: usize,
        last: *mut u8,
    ) -> Option<*mut u8> {
        let mut record = last;
        // SAFETY: the caller's promise.
        let code = unsafe {
            match self.shared.and_then(|shared| shared.next_record) {
                Some(next_record) => next_record(self.subscriber, buffer, bytes, &raw mut record),
                None => (self.library.functions.next_record)(buffer, bytes, &raw mut record),
            }
        };
        (code == SUCCESS && !record.is_null()).then_some(record)
    }

    /// Returns how many records CUPTI has dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: writes one number. A null context means all of them.
        let code = unsafe {
            match self.shared.and_then(|shared| shared.dropped) {
                Some(of) => of(self.subscriber, ptr::null_mut(), 0, &raw mut dropped),
                None => (self.library.functions.dropped)(ptr::null_mut(), 0, &raw mut dropped),
            }
        };
        if code == SUCCESS { dropped as u64 } else { 0 }
    }

    /// Returns the time on the clock of the records.
    pub fn now_ns(&self) -> Option<u64> {
        let mut now = 0;
        // SAFETY: writes one number.
        let code = unsafe { (self.library.functions.timestamp)(&raw mut now) };
        (code == SUCCESS).then_some(now)
    }
}

/// Subscribes, next to other tools if the version allows it.
fn subscribe(library: &'static Library) -> Result<Session, String> {
    let mut subscriber = ptr::null_mut();
    let mut holder: [c_char; NAME_BYTES] = [0; NAME_BYTES];
    let session = |subscriber, shared| Session { library, subscriber, shared };
    if let Some(shared) = &library.shared {
        let mut params = SubscriberParams {
            struct_size: size_of::<SubscriberParams>(),
            name: c"gpu-time".as_ptr(),
            holder: holder.as_mut_ptr(),
            // The last byte stays 0.
            holder_size: NAME_BYTES - 1,
            allow_several: 1,
            padding: [0; 7],
        };
        // SAFETY: the callback has CUPTI's type and is never unloaded. The parameters and the name outlive the
        // call.
        let code = unsafe {
            (shared.subscribe)(&raw mut subscriber, on_call, ptr::null_mut(), &raw mut params)
        };
        match code {
            SUCCESS => return Ok(session(subscriber, Some(shared))),
            HELD => {
                // SAFETY: the last byte is 0.
                let holder = unsafe { CStr::from_ptr(holder.as_ptr()) };
                return Err(refusal(library, HELD, &holder.to_string_lossy()));
            }
            // A version that several tools cannot subscribe to after all.
            _ => {}
        }
    }
    // SAFETY: the callback has CUPTI's type and is never unloaded.
    let code =
        unsafe { (library.functions.subscribe)(&raw mut subscriber, on_call, ptr::null_mut()) };
    match code {
        SUCCESS => Ok(session(subscriber, None)),
        code => Err(refusal(library, code, "")),
    }
}

/// Returns the sentence for an error. `holder` is the name of the tool that holds CUPTI, if it is known.
fn refusal(library: &Library, code: c_int, holder: &str) -> String {
    match (code, holder) {
        (HELD, "") => "another tool holds CUPTI: run without it to record kernels".to_owned(),
        (HELD, holder) => {
            format!(
                "another tool holds CUPTI (`{}`): run without it to record kernels",
                holder.escape_debug()
            )
        }
        _ => format!("CUPTI cannot record kernels: {}", library.name_of(code)),
    }
}
