//! Keeps the first error of CUPTI that does not stop recording but costs records.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::cupti::library::Library;
use crate::cupti::session::SUCCESS;

/// The first request that CUPTI refused, and its error code.
static FIRST: OnceLock<(&str, c_int)> = OnceLock::new();

/// Returns `true` if CUPTI has succeeded. Otherwise notes the error, of which the first one is kept. `request` completes
/// "CUPTI could not".
pub(super) fn is_success(request: &'static str, code: c_int) -> bool {
    if code != SUCCESS {
        _ = FIRST.set((request, code));
    }
    code == SUCCESS
}

/// Returns one sentence that describes the first error, if there is one.
pub(super) fn describe(library: &Library) -> Option<String> {
    let (request, code) = FIRST.get()?;
    Some(format!("CUPTI could not {request}: {}", library.name_of(*code)))
}
