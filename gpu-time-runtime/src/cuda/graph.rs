//! Driver calls that time launches captured into a graph.
//!
//! All of these calls are legal during a capture in any mode, and a failure does not invalidate the
//! capture.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Release};

use cudarc::driver::sys::{
    self, CUcontext, CUevent, CUgraph, CUresult, CUstreamCaptureStatus, CUuserObject,
};

use crate::cuda::objects::{create_event, record_event};
use crate::cuda::result::{check, raw};
use crate::cuda::symbols::{CaptureInfo, symbols};
use crate::cuda::{context::Context, context_guard::with_current};
use crate::gpu::Fault;
use crate::types::handles::{Event, EventPair, Stream};

/// `CU_EVENT_RECORD_EXTERNAL`: the record becomes a separate node.
const EXTERNAL: c_uint = 1;
/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, the only existing flag.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: transfers our reference to the graph.
const MOVE: c_uint = 1;
const INVALID_CONTEXT: u32 = CUresult::CUDA_ERROR_INVALID_CONTEXT as u32;

/// A capture in progress, and its graph.
pub(crate) struct Capture {
    pub id: u64,
    /// The stream's next node has no dependencies, so it will be a root of the graph.
    pub is_at_root: bool,
    graph: CUgraph,
}

/// The error returned if a graph could not take ownership of a user object.
pub(crate) struct KeepError {
    pub fault: Fault,
    /// The destructor will run nevertheless, at some later time.
    pub is_released: bool,
}

/// Returns `true` if the stream is being captured. For callers without a [`Context`]. `handle` is
/// the context's handle, or 0 if the caller knows only the stream.
pub(crate) fn is_captured(stream: Stream, handle: usize) -> bool {
    let Ok(symbols) = symbols() else { return false };
    let Some(info) = symbols.capture_info.filter(|_| !stream.is_legacy()) else { return false };
    let capture = || info.capture(stream);
    let capture = match handle {
        0 => capture(),
        _ if !stream.is_implicit() => capture(),
        handle => with_current(handle as CUcontext, capture),
    };
    matches!(capture, Ok(Some(_)))
}

impl Context {
    /// Returns the capture in progress on the stream, if any. The NULL stream cannot be captured.
    pub fn capture(&self, stream: Stream) -> Result<Option<Capture>, Fault> {
        let Some(info) = self.symbols.capture_info.filter(|_| !stream.is_legacy()) else {
            return Ok(None);
        };
        let in_context = || self.inside(|| info.capture(stream));
        if stream.is_implicit() {
            return in_context();
        }
        match info.capture(stream) {
            Err(Fault::Code(INVALID_CONTEXT)) => in_context(),
            capture => capture,
        }
    }

    /// Returns the event from which the device times of replays are counted. It is recorded on the runtime's
    /// own stream when a capture is first seen, and never again. Returns `None` if the driver cannot time
    /// graphs, or if recording failed.
    pub fn origin(&self) -> Option<Event> {
        *self.origin.get_or_init(|| {
            self.symbols.capture_info?;
            self.inside(|| {
                let event = create_event()?;
                record_event(&event, self.own_stream?).map(|()| event)
            })
            .ok()
        })
    }

    /// Returns events to record in nodes whose times are not read.
    pub fn blank_events(&self) -> Result<EventPair, Fault> {
        *self.blank.get_or_init(|| {
            self.inside(|| Ok(EventPair { start: create_event()?, stop: create_event()? }))
        })
    }

    /// Arranges for `released` to be set, on any thread, when the graph and all its copies have
    /// been destroyed.
    pub fn keep(&self, capture: &Capture, released: &'static AtomicBool) -> Result<(), KeepError> {
        let mut kept = None;
        let inside = self.inside(|| {
            kept = Some(keep(capture.graph, released));
            Ok(())
        });
        // The result is valid even if the caller's context could not be restored.
        kept.unwrap_or_else(|| {
            let fault = inside.err().unwrap_or(Fault::Captured);
            Err(KeepError { fault, is_released: false })
        })
    }

    /// Records an event as a node in the graph into which the stream is being captured.
    pub fn record_node(&self, event: &Event, stream: Stream) -> Result<(), Fault> {
        // SAFETY: the event was created in this context and is never destroyed; the stream is live.
        self.on_stream(stream, || unsafe {
            sys::cuEventRecordWithFlags(event.handle() as CUevent, raw(stream), EXTERNAL)
        })
    }
}

impl CaptureInfo {
    /// Returns the stream's capture, unless it has been invalidated and cannot become a graph.
    fn capture(self, stream: Stream) -> Result<Option<Capture>, Fault> {
        let (mut status, mut id) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, 0);
        let (mut graph, mut count): (CUgraph, usize) = (ptr::null_mut(), 0);
        let (status_out, id_out, graph_out) = (&raw mut status, &raw mut id, &raw mut graph);
        let (no_nodes, no_edges, count_out) = (ptr::null_mut(), ptr::null_mut(), &raw mut count);
        let stream = raw(stream);
        // SAFETY: writes a status, two numbers and a handle; the optional results are not
        // requested.
        check(unsafe {
            match self {
                CaptureInfo::V2(info) => {
                    info(stream, status_out, id_out, graph_out, no_nodes, count_out)
                }
                CaptureInfo::V3(info) => {
                    info(stream, status_out, id_out, graph_out, no_nodes, no_edges, count_out)
                }
            }
        })?;
        let is_active =
            status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE && !graph.is_null();
        Ok(is_active.then_some(Capture { id, is_at_root: count == 0, graph }))
    }
}

/// Makes the graph keep an object whose destructor sets `released`.
fn keep(graph: CUgraph, released: &'static AtomicBool) -> Result<(), KeepError> {
    let mut object: CUuserObject = ptr::null_mut();
    let flag = ptr::from_ref(released).cast_mut().cast();
    // SAFETY: writes one handle; the flag is never freed.
    check(unsafe {
        sys::cuUserObjectCreate(&raw mut object, flag, Some(release), 1, NO_DESTRUCTOR_SYNC)
    })
    .map_err(|fault| KeepError { fault, is_released: false })?;
    // SAFETY: the driver allows this while the graph is being captured; the reference is our own.
    check(unsafe { sys::cuGraphRetainUserObject(graph, object, 1, MOVE) }).map_err(|fault| {
        // SAFETY: the reference is still our own, and not used after this.
        _ = check(unsafe { sys::cuUserObjectRelease(object, 1) });
        KeepError { fault, is_released: true }
    })
}

/// Runs when the last graph with these events has been destroyed, on a driver thread that must not
/// make driver calls.
unsafe extern "C" fn release(flag: *mut c_void) {
    // SAFETY: this is the flag passed to `keep`, which is never freed.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Release);
}
