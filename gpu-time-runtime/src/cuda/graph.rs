//! What the driver is asked where a launch becomes a node of a graph.
//!
//! All of it is legal during a capture of any mode, and nothing of it ruins one where it fails.

use std::ffi::c_uint;
use std::sync::atomic::AtomicBool;

use cudarc::driver::sys::{self, CUcontext, CUevent, CUresult};

use crate::cuda::context::Context;
use crate::cuda::context_guard::with_current;
use crate::cuda::event::create_event;
use crate::cuda::graph_symbols::{Capture, NotKept};
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::symbols::symbols;
use crate::gpu::Fault;
use crate::types::handles::{Event, EventPair, Stream};

/// `CU_EVENT_RECORD_EXTERNAL`: the record becomes a node of its own.
const EXTERNAL: c_uint = 1;
const INVALID_CONTEXT: u32 = CUresult::CUDA_ERROR_INVALID_CONTEXT as u32;

/// Whether the stream is being captured, asked without a [`Context`]. `handle` is 0 where the caller
/// had only the stream.
pub(crate) fn is_captured(stream: Stream, handle: usize) -> bool {
    let Ok(symbols) = symbols() else { return false };
    let Some(graph) = symbols.graph.as_ref().filter(|_| !stream.is_legacy()) else { return false };
    let ask = || graph.capture(stream);
    let found = match handle {
        0 => ask(),
        _ if !stream.is_implicit() => ask(),
        handle => with_current(handle as CUcontext, ask),
    };
    matches!(found, Ok(Some(_)))
}

impl Context {
    /// The capture that goes on in the stream; none in the NULL stream, which cannot be captured.
    pub fn capture(&self, stream: Stream) -> Result<Option<Capture>, Fault> {
        let Some(graph) = self.symbols.graph.as_ref().filter(|_| !stream.is_legacy()) else {
            return Ok(None);
        };
        let in_context = || self.inside(|| graph.capture(stream));
        if stream.is_implicit() {
            return in_context();
        }
        match graph.capture(stream) {
            Err(Fault::Code(INVALID_CONTEXT)) => in_context(),
            found => found,
        }
    }

    /// What the device's time of replays is counted from: an event in our own stream, recorded when a
    /// capture was first met and never again. None where that failed.
    pub fn origin(&self) -> Option<Event> {
        *self.origin.get_or_init(|| {
            self.symbols.graph.as_ref()?;
            self.inside(|| {
                let event = create_event()?;
                // SAFETY: both were made in this context and are never destroyed.
                let recorded =
                    unsafe { sys::cuEventRecord(event.handle() as CUevent, raw(self.side?)) };
                check(recorded).map(|()| event)
            })
            .ok()
        })
    }

    /// Events for nodes whose times nobody reads.
    pub fn blank_events(&self) -> Result<EventPair, Fault> {
        *self.blank.get_or_init(|| {
            self.inside(|| Ok(EventPair { start: create_event()?, stop: create_event()? }))
        })
    }

    /// Sets `released` when the graph and everything made of it is gone, on whatever thread.
    pub fn keep(&self, capture: &Capture, released: &'static AtomicBool) -> Result<(), NotKept> {
        let mut cell = None;
        let inside = self.inside(|| {
            cell = self.symbols.graph.as_ref().map(|symbols| symbols.keep(capture, released));
            Ok(())
        });
        // What was done counts, also where the caller's context could not be given back at once.
        cell.unwrap_or_else(|| {
            let fault = inside.err().unwrap_or(Fault::Captured);
            Err(NotKept { fault, is_released: false })
        })
    }

    /// Makes the record of an event a node of the graph that the stream is being captured into.
    pub fn record_node(&self, event: &Event, stream: Stream) -> Result<(), Fault> {
        let symbols = self.symbols.graph.as_ref().ok_or(Fault::Captured)?;
        // SAFETY: the event was made in this context and is never destroyed; the stream is live.
        self.on_stream(stream, || unsafe {
            (symbols.record)(event.handle() as CUevent, raw(stream), EXTERNAL)
        })
    }
}
