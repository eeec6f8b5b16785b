//! The runtime's own streams and timing events.

use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::result::{event, stream};
use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult};

use crate::cuda::result::{check, raw};
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::types::handles::{Event, Stream};

/// Creates a stream in the current context, for work of the runtime that must stay out of the
/// application's streams. It does not synchronize with the NULL stream, and is never destroyed.
pub(super) fn create_stream() -> Result<Stream, Fault> {
    Ok(Stream(stream::create(StreamKind::NonBlocking)? as usize))
}

/// Creates a timing event in the current context.
pub(super) fn create_event() -> Result<Event, Fault> {
    Ok(Event::new(event::create(CUevent_flags::CU_EVENT_DEFAULT)? as usize))
}

/// Records an event on one of the runtime's own streams. Both must have been created in the current
/// context.
pub(super) fn record_event(event: &Event, own_stream: Stream) -> Result<(), Fault> {
    // SAFETY: event and stream were created in the current context and are never destroyed.
    Ok(unsafe { event::record(event.handle() as CUevent, raw(own_stream)) }?)
}

/// Returns the time between two events in nanoseconds, or `None` until the GPU has passed both.
#[inline]
pub(super) fn elapsed(
    symbols: &Symbols,
    start: &Event,
    stop: &Event,
) -> Result<Option<f64>, Fault> {
    let mut ms = 0.0f32;
    // SAFETY: both events were created by `create_event` and have not been destroyed; callers check
    // that their context exists, and the driver returns an error for one that has just been
    // destroyed.
    let result = unsafe {
        (symbols.elapsed_time)(&raw mut ms, start.handle() as CUevent, stop.handle() as CUevent)
    };
    match result {
        CUresult::CUDA_ERROR_NOT_READY => Ok(None),
        result => check(result).map(|()| Some(f64::from(ms) * 1e6)),
    }
}
