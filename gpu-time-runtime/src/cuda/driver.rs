//! Handles of contexts: the one of a stream, the id of one, and the retain of a primary one.

use std::ffi::{c_int, c_uint};
use std::ptr;

use cudarc::driver::result::{ctx, primary_ctx};
use cudarc::driver::sys::{self, CUcontext};

use crate::cuda::result::{check, raw};
use crate::cuda::symbols::symbols;
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// Returns the handle of the context that a stream belongs to.
pub(super) fn context_of(stream: Stream) -> Result<usize, Fault> {
    if stream.is_implicit() {
        let current = ctx::get_current()?.ok_or(Fault::ContextGone)?;
        return Ok(current as usize);
    }
    let mut context: CUcontext = ptr::null_mut();
    // SAFETY: the caller vouches for a raw stream; writes one pointer.
    check(unsafe { sys::cuStreamGetCtx(raw(stream), &raw mut context) })?;
    if context.is_null() { Err(Fault::ContextGone) } else { Ok(context as usize) }
}

/// Returns the id of a context, which the driver never uses again. `None` from drivers that have no
/// ids.
pub(super) fn id_of(handle: usize) -> Result<Option<u64>, Fault> {
    let symbols = symbols().map_err(|_| Fault::ContextGone)?;
    let Some(context_id) = symbols.context_id else { return Ok(None) };
    let mut id = 0;
    // SAFETY: the caller's stream belongs to this context, or did; the driver answers for a handle
    // whose context is gone with an error; writes one integer.
    check(unsafe { context_id(handle as CUcontext, &raw mut id) })?;
    Ok(Some(id))
}

/// Retains the primary context of a device if it is the one with this handle: forever, unless it is
/// released. Never creates one. Returns `true` if it is retained.
pub(super) fn retain_if_primary(handle: usize, ordinal: u32) -> bool {
    let (mut flags, mut active): (c_uint, c_int) = (0, 0);
    let device = ordinal as c_int;
    // SAFETY: writes two integers.
    let state =
        check(unsafe { sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active) });
    if state.is_err() || active == 0 {
        return false;
    }
    // SAFETY: the driver gave this ordinal; the retain is released below or by the caller, or kept
    // for ever.
    let Ok(primary) = (unsafe { primary_ctx::retain(device) }) else { return false };
    let is_it = primary as usize == handle;
    if !is_it {
        release(ordinal);
    }
    is_it
}

/// Gives back one retain of the device's primary context, which the caller holds.
pub(super) fn release(ordinal: u32) {
    // SAFETY: the driver gave this ordinal, and the caller gives its retain up.
    _ = unsafe { primary_ctx::release(ordinal as c_int) };
}
