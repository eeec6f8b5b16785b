//! Subscribes to CUPTI.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::cuda;
use crate::cupti::buffers::{on_complete, on_request, on_shared_complete, on_shared_request, pool};
use crate::cupti::captures;
use crate::cupti::graph_changes;
use crate::cupti::launches::{INIT, on_call};
use crate::cupti::library::{Library, SubscriberParams};
use crate::cupti::loads;
use crate::cupti::recording::RECORDING;
use crate::cupti::session::{SUCCESS, Session};
use crate::cupti::version;

/// CUPTI's result while another tool is its only subscriber.
const HELD: c_int = 39;
/// CUPTI's result if the driver keeps profiling from the user: `INSUFFICIENT_PRIVILEGES`.
const NOT_PERMITTED: c_int = 35;
/// CUPTI's results if the library does not fit the driver or the device: `INVALID_DEVICE`, `NOT_COMPATIBLE`,
/// `NOT_INITIALIZED`, `NOT_SUPPORTED` and `UNKNOWN`.
const MISFIT: [c_int; 5] = [2, 14, 15, 27, 999];
/// The size of the buffer for the name of another subscriber.
const NAME_BYTES: usize = 64;

/// An error of CUPTI, described for the report.
pub(super) struct CuptiError {
    code: c_int,
    /// One sentence that says which tool holds CUPTI, or describes the error.
    pub why: String,
}

impl CuptiError {
    /// Returns `true` if another version of the library may work.
    pub fn is_misfit(&self) -> bool {
        MISFIT.contains(&self.code)
    }
}

/// Subscribes, registers the pool of buffers, and switches all callbacks on.
pub(super) fn subscribe(library: &'static Library) -> Result<Session, CuptiError> {
    let session = connect(library)?;
    prepare(&session).map_err(|code| {
        // SAFETY: the subscriber is valid, and not used after this.
        unsafe { (library.functions.unsubscribe)(session.subscriber) };
        refusal(library, code, "")
    })?;
    Ok(session)
}

fn prepare(session: &Session) -> Result<(), c_int> {
    // Create the pool now, because the callbacks must not.
    pool();
    // SAFETY: the callbacks have CUPTI's types and are never unloaded.
    let code = unsafe {
        match session.shared {
            Some(shared) => {
                (shared.register)(session.subscriber, on_shared_request, on_shared_complete)
            }
            None => (session.library.functions.register)(on_request, on_complete),
        }
    };
    if code != SUCCESS {
        return Err(code);
    }
    // Errors are ignored, because older versions lack some of the functions. An unnoticed capture only delays the calls
    // that launch into it.
    for id in captures::ids().chain(graph_changes::ids()).chain(loads::LOADS).chain([INIT]) {
        _ = session.switch_callback_on(id);
    }
    RECORDING.switch_callbacks_on(session)
}

/// Subscribes, alongside other tools if the version allows that.
fn connect(library: &'static Library) -> Result<Session, CuptiError> {
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
            // Subscribe as the only tool.
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

/// Describes an error. `holder` is the name of the tool that holds CUPTI, or empty if unknown.
pub(super) fn refusal(library: &Library, code: c_int, holder: &str) -> CuptiError {
    let why = match (code, holder) {
        (HELD, "") => "another tool holds CUPTI: run without it to record kernels".to_owned(),
        (HELD, holder) => {
            format!(
                "another tool holds CUPTI (`{}`): run without it to record kernels",
                holder.escape_debug()
            )
        }
        (NOT_PERMITTED, _) => format!(
            "CUPTI cannot record kernels: {}: run as root or with CAP_SYS_ADMIN, or load the driver's module with \
             `NVreg_RestrictProfilingToAdminUsers=0`",
            library.name_of(code)
        ),
        _ => failure(library, &library.name_of(code)),
    };
    CuptiError { code, why }
}

/// Returns a sentence for an error with this name, which says so if the library is too new for the driver.
fn failure(library: &Library, name: &str) -> String {
    let is_too_new = |driver: &String| version::is_too_new(library.version, driver);
    match cuda::driver_version().filter(is_too_new) {
        Some(driver) => format!(
            "CUPTI of CUDA {} cannot record kernels with a driver of CUDA {driver} ({name}): install the \
             PyPI package `nvidia-cuda-cupti-cu{}`",
            version::toolkit(library.version),
            version::major(&driver).unwrap_or_default()
        ),
        None => format!("CUPTI cannot record kernels: {name}"),
    }
}
