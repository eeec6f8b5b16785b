//! Context handles: looking up a stream's context, reading a context's id, and retaining a primary
//! context.

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

/// Returns `true` if the context is the current one of the calling thread.
pub(super) fn is_current(handle: usize) -> bool {
    matches!(ctx::get_current(), Ok(Some(current)) if current as usize == handle)
}

/// Returns a context's id, which the driver never reuses, or `None` if the driver does not support
/// ids.
pub(super) fn id_of(handle: usize) -> Result<Option<u64>, Fault> {
    let symbols = symbols().map_err(|_| Fault::ContextGone)?;
    let Some(context_id) = symbols.context_id else { return Ok(None) };
    let mut id = 0;
    // SAFETY: the caller's stream belongs to this context, or did; the driver returns an error for
    // the handle of a destroyed context; writes one integer.
    check(unsafe { context_id(handle as CUcontext, &raw mut id) })?;
    Ok(Some(id))
}

/// Returns `true` if a device's primary context exists.
pub(super) fn is_active(ordinal: u32) -> bool {
    let (mut flags, mut active): (c_uint, c_int) = (0, 0);
    let device = ordinal as c_int;
    // SAFETY: writes two integers.
    let state =
        check(unsafe { sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active) });
    state.is_ok() && active != 0
}

/// Retains a device's primary context if it has this handle, until [`release`] is called. Never
/// creates a context. Returns `true` if the context is retained.
pub(super) fn retain_if_primary(handle: usize, ordinal: u32) -> bool {
    if !is_active(ordinal) {
        return false;
    }
    // SAFETY: the driver gave this ordinal; the retained context is released below or by the
    // caller, or kept forever.
    let Ok(primary) = (unsafe { primary_ctx::retain(ordinal as c_int) }) else { return false };
    let is_it = primary as usize == handle;
    if !is_it {
        release(ordinal);
    }
    is_it
}

/// Retains a device's primary context forever and returns its handle. Creates the context if needed.
#[cfg(all(feature = "kernels", feature = "nvml"))]
pub(super) fn retain_primary(ordinal: u32) -> Result<usize, Fault> {
    // SAFETY: the caller has initialized CUDA, and the driver gave this ordinal.
    let primary = unsafe { primary_ctx::retain(ordinal as c_int) }?;
    Ok(primary as usize)
}

/// Releases the device's primary context, which the caller has retained.
pub(super) fn release(ordinal: u32) {
    // SAFETY: the driver gave this ordinal, and the caller gives up its retained reference.
    _ = unsafe { primary_ctx::release(ordinal as c_int) };
}
