//! The runtime's own streams and timing events.

use std::ffi::c_uint;
use std::ptr;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult, CUstream, CUstream_flags};

use crate::cuda::result::{check, raw};
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::types::handles::{Event, Stream};

/// Creates a stream in the current context that waits for no other stream, and that no other stream
/// waits for. It is never destroyed. Work of the runtime that must not stand in the application's
/// streams goes there.
pub(super) fn create_stream() -> Result<Stream, Fault> {
    let mut stream: CUstream = ptr::null_mut();
    let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: writes one handle.
    check(unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
    Ok(Stream(stream as usize))
}

/// Creates a timing event in the current context.
pub(super) fn create_event() -> Result<Event, Fault> {
    let mut event: CUevent = ptr::null_mut();
    // SAFETY: writes one handle.
    check(unsafe {
        sys::cuEventCreate(&raw mut event, CUevent_flags::CU_EVENT_DEFAULT as c_uint)
    })?;
    Ok(Event::new(event as usize))
}

/// Records an event on a stream of the runtime's own; both must have been created in the current
/// context.
pub(super) fn record_event(event: &Event, own_stream: Stream) -> Result<(), Fault> {
    // SAFETY: event and stream were created in the current context and are never destroyed.
    check(unsafe { sys::cuEventRecord(event.handle() as CUevent, raw(own_stream)) })
}

/// Returns the nanoseconds between two events, or `None` while the GPU has not passed both.
#[inline]
pub(super) fn elapsed(
    symbols: &Symbols,
    start: &Event,
    stop: &Event,
) -> Result<Option<f64>, Fault> {
    let mut ms = 0.0f32;
    // SAFETY: both events were created by `create_event` and have not been destroyed; callers check
    // that their context exists, and the driver returns an error for one that has just gone.
    let result = unsafe {
        (symbols.elapsed_time)(&raw mut ms, start.handle() as CUevent, stop.handle() as CUevent)
    };
    match result {
        CUresult::CUDA_ERROR_NOT_READY => Ok(None),
        result => check(result).map(|()| Some(f64::from(ms) * 1e6)),
    }
}
