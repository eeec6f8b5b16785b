//! The retain of a device's primary context, which keeps it alive after the application has
//! released it.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cudarc::driver::{result::primary_ctx, sys};

use crate::cuda::device::DeviceInfo;
use crate::cuda::result::check;

/// Holds `true` while the primary context of a device is retained: forever, unless it is given
/// back.
pub(super) struct Retain(AtomicBool);

impl Retain {
    /// Retains the device's primary context if it is the one with this handle. Never creates one.
    pub fn if_primary(handle: usize, device: &DeviceInfo) -> Retain {
        Retain(AtomicBool::new(retain_if_primary(handle, device)))
    }

    pub fn is_held(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Gives the retain back, once. `device` is the one that it was taken for.
    pub fn give_back(&self, device: &DeviceInfo) {
        if self.0.swap(false, Relaxed) {
            // SAFETY: gives back the retain that `retain_if_primary` took.
            _ = unsafe { primary_ctx::release(device.ordinal as c_int) };
        }
    }
}

fn retain_if_primary(handle: usize, device: &DeviceInfo) -> bool {
    let ordinal = device.ordinal as c_int;
    let (mut flags, mut active): (c_uint, c_int) = (0, 0);
    // SAFETY: writes two integers.
    let state =
        check(unsafe { sys::cuDevicePrimaryCtxGetState(ordinal, &raw mut flags, &raw mut active) });
    if state.is_err() || active == 0 {
        return false;
    }
    // SAFETY: the driver gave this ordinal; the retain is given back below or by `give_back`, or
    // kept for ever.
    let Ok(primary) = (unsafe { primary_ctx::retain(ordinal) }) else { return false };
    if primary as usize == handle {
        return true;
    }
    // SAFETY: gives back the retain taken above.
    _ = unsafe { primary_ctx::release(ordinal) };
    false
}
