//! The retain of a device's primary context, which keeps it alive after the application has
//! released it.

use std::ffi::{c_int, c_uint};

use cudarc::driver::{result::primary_ctx, sys};

use crate::cuda::result::check;

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
