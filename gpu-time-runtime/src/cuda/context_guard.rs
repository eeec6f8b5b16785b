//! Leaving the calling thread as it was: its current context and its capture mode.

use std::ptr;

use cudarc::driver::sys::{self, CUcontext, CUresult, CUstreamCaptureMode};

use crate::cuda::result::check;
use crate::gpu::Fault;

/// Runs `f` with `context` current, and gives the caller's context back.
pub(super) fn with_current<R>(
    context: CUcontext,
    f: impl FnOnce() -> Result<R, Fault>,
) -> Result<R, Fault> {
    let mut current: CUcontext = ptr::null_mut();
    // SAFETY: writes one pointer.
    check(unsafe { sys::cuCtxGetCurrent(&raw mut current) })?;
    if current == context {
        return f();
    }
    // SAFETY: `context` was a live context when the caller's stream was; a stale one is an error.
    check(unsafe { sys::cuCtxPushCurrent_v2(context) })?;
    let result = f();
    let popped = insist(|| {
        let mut popped: CUcontext = ptr::null_mut();
        // SAFETY: pops what was pushed above on this same thread.
        unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) }
    });
    if popped.is_err() {
        // The caller's context is to be current, at the price of a level on its stack.
        // SAFETY: it was current when we came.
        _ = check(unsafe { sys::cuCtxSetCurrent(current) });
    }
    result.and_then(|value| popped.map(|()| value))
}

/// Runs `f` in the relaxed capture mode, in which no call of ours can break a capture of the
/// application, on whatever thread that is.
pub(super) fn relaxed<R>(f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: swaps this thread's mode with the one in `mode`.
    check(unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) })?;
    let result = f();
    // SAFETY: as above; `mode` holds what was there before.
    let restored = insist(|| unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) });
    result.and_then(|value| restored.map(|()| value))
}

/// Gives back what is the caller's: where that fails, it is tried once more.
fn insist(mut give_back: impl FnMut() -> CUresult) -> Result<(), Fault> {
    check(give_back()).or_else(|_| check(give_back()))
}
