//! Timing events of the driver: how one is made, and how two are read.

use std::ffi::c_uint;
use std::ptr;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult};

use crate::cuda::result::check;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::types::handles::Event;

/// A timing event of the current context.
pub(super) fn create_event() -> Result<Event, Fault> {
    let mut event: CUevent = ptr::null_mut();
    // SAFETY: writes one handle.
    check(unsafe {
        sys::cuEventCreate(&raw mut event, CUevent_flags::CU_EVENT_DEFAULT as c_uint)
    })?;
    Ok(Event::new(event as usize))
}

/// Nanoseconds between two events, or `None` while the GPU has not passed both.
#[inline]
pub(super) fn elapsed(
    symbols: &Symbols,
    start: &Event,
    stop: &Event,
) -> Result<Option<f64>, Fault> {
    let mut ms = 0.0f32;
    // SAFETY: both events were made by `create_event` and are never destroyed; an event whose
    // context is gone is answered with an error.
    let result = unsafe {
        (symbols.elapsed_time)(&raw mut ms, start.handle() as CUevent, stop.handle() as CUevent)
    };
    match result {
        CUresult::CUDA_ERROR_NOT_READY => Ok(None),
        result => check(result).map(|()| Some(f64::from(ms) * 1e6)),
    }
}
