//! Guards that restore the calling thread's current context and capture mode after driver calls.

use std::ptr;

use cudarc::driver::result::ctx;
use cudarc::driver::sys::{self, CUcontext, CUresult, CUstreamCaptureMode};

use crate::cuda::result::check;
use crate::gpu::Fault;

/// Runs `f` with `context` current, then makes the caller's context current again.
pub(super) fn with_current<R>(
    context: CUcontext,
    f: impl FnOnce() -> Result<R, Fault>,
) -> Result<R, Fault> {
    let current = ctx::get_current()?;
    if current == Some(context) {
        return f();
    }
    // SAFETY: the caller's stream belongs to `context`, or did; the driver returns an error for a
    // stale handle.
    check(unsafe { sys::cuCtxPushCurrent_v2(context) })?;
    let result = f();
    let popped = retry(|| {
        let mut popped: CUcontext = ptr::null_mut();
        // SAFETY: pops what was pushed above on this same thread.
        unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) }
    });
    if popped.is_err() {
        // Make the caller's context current anyway, although this leaves an extra entry on the
        // context stack.
        // SAFETY: it was current on entry.
        _ = unsafe { ctx::set_current(current.unwrap_or(ptr::null_mut())) };
    }
    result.and_then(|value| popped.map(|()| value))
}

/// Runs `f` in relaxed capture mode, in which the runtime's calls cannot invalidate a capture of
/// the application on any thread.
pub(super) fn relaxed<R>(f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: swaps this thread's mode with the one in `mode`.
    check(unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) })?;
    let result = f();
    // SAFETY: as above; `mode` now holds the caller's mode.
    let restored = retry(|| unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) });
    result.and_then(|value| restored.map(|()| value))
}

/// Runs `f` with the context current, and in relaxed capture mode.
pub(super) fn inside<R>(handle: usize, f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    with_current(handle as CUcontext, || relaxed(f))
}

/// Restores the caller's state, retrying once on failure.
fn retry(mut restore: impl FnMut() -> CUresult) -> Result<(), Fault> {
    check(restore()).or_else(|_| check(restore()))
}
