//! Registers the exit handler with the C library.
//!
//! Exit handlers run in the reverse order of their registration, and the libraries that the last report calls
//! register handlers for their own teardown. The exit handler is therefore registered again whenever one of
//! them may have done so. Only its first run does anything.

#![allow(unsafe_code)] // registrations with the C library

use std::sync::OnceLock;

static HANDLER: OnceLock<extern "C" fn()> = OnceLock::new();

/// Sets the handler for all registrations that follow. It must not unwind.
pub(crate) fn set_handler(handler: extern "C" fn()) {
    _ = HANDLER.set(handler);
}

/// Registers the handler, to run before all handlers registered so far. Each caller does this once.
pub(crate) fn register() {
    if let Some(handler) = HANDLER.get() {
        // SAFETY: the handler does not unwind. If the C library is out of memory, there is no report.
        unsafe { libc::atexit(*handler) };
    }
}
