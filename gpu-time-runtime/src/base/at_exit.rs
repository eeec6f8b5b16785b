//! Registers the exit handler with the C library.
//!
//! Exit handlers run in the reverse order of their registration, and the libraries that the last report calls
//! register handlers for their own teardown. The exit handler is therefore registered again whenever one of
//! them may have done so. Only its first run does anything.

#![allow(unsafe_code)] // registrations with the C library

use std::sync::{Once, OnceLock};

/// An event after which the exit handler is registered again.
#[derive(Clone, Copy)]
pub(crate) enum Occasion {
    /// The first call of a timed function. In a program without a GPU it is the only occasion.
    FirstCall,
    /// The first context: by now the driver has registered its teardown, after which the driver must
    /// not be called.
    Context,
    /// The first recording by CUPTI: by now CUPTI has registered its teardown.
    #[cfg(feature = "kernels")]
    Recording,
    /// The first launch that CUPTI records: by now the driver has registered its teardown. A program may use it for
    /// the first time inside an opened call.
    #[cfg(feature = "kernels")]
    RecordedLaunch,
    /// The first locked clock: by now NVML has registered its teardown. The program may have no timed
    /// functions.
    #[cfg(feature = "nvml")]
    LockedClocks,
}

struct AtExit {
    handler: OnceLock<extern "C" fn()>,
    /// One for each [`Occasion`], so that it registers the handler only once.
    registrations: [Once; 5],
}

static AT_EXIT: AtExit =
    AtExit { handler: OnceLock::new(), registrations: [const { Once::new() }; 5] };

/// Sets the handler for all registrations that follow. It must not unwind.
pub(crate) fn set_handler(handler: extern "C" fn()) {
    _ = AT_EXIT.handler.set(handler);
}

/// Registers the handler, once per occasion, to run before all handlers registered so far.
pub(crate) fn register(occasion: Occasion) {
    if let Some(once) = AT_EXIT.registrations.get(occasion as usize)
        && let Some(handler) = AT_EXIT.handler.get()
    {
        // SAFETY: the handler does not unwind. If the C library is out of memory, there is no report.
        once.call_once(|| _ = unsafe { libc::atexit(*handler) });
    }
}
