//! Driver calls for launches that become nodes of a graph.
//!
//! All of them are legal during a capture of any mode, and none invalidates the capture if it
//! fails.

use std::ffi::c_uint;
use std::sync::atomic::AtomicBool;

use cudarc::driver::sys::{CUcontext, CUevent, CUresult};

use crate::cuda::context::Context;
use crate::cuda::context_guard::with_current;
use crate::cuda::graph_symbols::{Capture, KeepError};
use crate::cuda::objects::{create_event, record_event};
use crate::cuda::result::raw;
use crate::cuda::symbols::symbols;
use crate::gpu::Fault;
use crate::types::handles::{Event, EventPair, Stream};

/// `CU_EVENT_RECORD_EXTERNAL`: the record becomes a node of its own.
const EXTERNAL: c_uint = 1;
const INVALID_CONTEXT: u32 = CUresult::CUDA_ERROR_INVALID_CONTEXT as u32;

/// Returns `true` if the stream is being captured, for callers without a [`Context`]. `handle` is 0
/// if the caller has only the stream.
pub(crate) fn is_captured(stream: Stream, handle: usize) -> bool {
    let Ok(symbols) = symbols() else { return false };
    let Some(graph) = symbols.graph.as_ref().filter(|_| !stream.is_legacy()) else { return false };
    let capture = || graph.capture(stream);
    let capture = match handle {
        0 => capture(),
        _ if !stream.is_implicit() => capture(),
        handle => with_current(handle as CUcontext, capture),
    };
    matches!(capture, Ok(Some(_)))
}

impl Context {
    /// Returns the capture of the stream. The NULL stream cannot be captured.
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
            capture => capture,
        }
    }

    /// Returns the event from which the device's times of replays are counted. It is recorded on
    /// our own stream when a capture is first seen, and never again. `None` if that failed.
    pub fn origin(&self) -> Option<Event> {
        *self.origin.get_or_init(|| {
            self.symbols.graph.as_ref()?;
            self.inside(|| {
                let event = create_event()?;
                record_event(&event, self.own_stream?).map(|()| event)
            })
            .ok()
        })
    }

    /// Returns events for nodes whose times are not read.
    pub fn blank_events(&self) -> Result<EventPair, Fault> {
        *self.blank.get_or_init(|| {
            self.inside(|| Ok(EventPair { start: create_event()?, stop: create_event()? }))
        })
    }

    /// Sets `released` when the graph and all its copies have been destroyed, on any thread.
    pub fn keep(&self, capture: &Capture, released: &'static AtomicBool) -> Result<(), KeepError> {
        let mut cell = None;
        let inside = self.inside(|| {
            cell = self.symbols.graph.as_ref().map(|symbols| symbols.keep(capture, released));
            Ok(())
        });
        // The result counts, even if the caller's context could not be restored at first.
        cell.unwrap_or_else(|| {
            let fault = inside.err().unwrap_or(Fault::Captured);
            Err(KeepError { fault, is_released: false })
        })
    }

    /// Records an event as a node of the graph that the stream is being captured into.
    pub fn record_node(&self, event: &Event, stream: Stream) -> Result<(), Fault> {
        let symbols = self.symbols.graph.as_ref().ok_or(Fault::Captured)?;
        // SAFETY: the event was created in this context and is never destroyed; the stream is live.
        self.on_stream(stream, || unsafe {
            (symbols.record)(event.handle() as CUevent, raw(stream), EXTERNAL)
        })
    }
}
