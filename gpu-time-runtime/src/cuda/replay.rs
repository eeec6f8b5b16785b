//! Captures the calling thread's work on a stream into a graph, and replays it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::sys::{
    self, CUgraph, CUgraphExec, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use crate::base::{console, fork};
use crate::cuda::context::Context;
use crate::cuda::result::{check, raw};
use crate::gpu::{Fault, Gpu};
use crate::types::handles::Stream;

const UNJOINED: u32 = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED as u32;

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` while the calling thread is recording calls for replay. The graph being captured
/// then gets no timing nodes.
pub(crate) fn is_recording() -> bool {
    IS_RECORDING.get()
}

/// A capture that the runtime has begun.
///
/// Invariant: the capture lasts until the recording is finished or dropped, on the same thread that
/// began it.
pub(crate) struct ReplayCapture {
    context: &'static Context,
    stream: Stream,
    is_over: bool,
    thread: PhantomData<*const ()>,
}

/// A graph that can be launched repeatedly.
pub(crate) struct Replay {
    context: &'static Context,
    exec: CUgraphExec,
}

impl Context {
    /// Starts capturing work on the stream into a graph. The capture must end on the same thread.
    ///
    /// # Errors
    ///
    /// One sentence that says why calls on this stream cannot be replayed.
    pub fn record_calls(&'static self, stream: Stream) -> Result<ReplayCapture, String> {
        if !self.symbols.can_replay {
            return Err("the CUDA driver is too old".to_owned());
        }
        if stream.is_legacy() {
            return Err("the NULL stream cannot be captured".to_owned());
        }
        if self.is_capturing(stream).map_err(|fault| fault.to_string())? {
            return Err("the stream is already being captured".to_owned());
        }
        // In this mode, calls on other threads cannot invalidate the capture.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live, which the caller vouched for.
        self.on_stream(stream, || unsafe { sys::cuStreamBeginCapture_v2(raw(stream), mode) })
            .map_err(|fault| fault.to_string())?;
        IS_RECORDING.set(true);
        Ok(ReplayCapture { context: self, stream, is_over: false, thread: PhantomData })
    }
}

impl ReplayCapture {
    /// Returns `true` if the capture has not been invalidated.
    pub fn is_whole(&self) -> bool {
        let status = self.context.capture_status(self.stream);
        status == Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
    }

    /// Ends the capture, even an invalidated one, and instantiates its graph.
    ///
    /// # Errors
    ///
    /// One sentence that says why the closure cannot be replayed.
    pub fn finish(mut self) -> Result<Replay, String> {
        let graph = self.end().map_err(|fault| match fault {
            Fault::Code(UNJOINED) => {
                "the closure leaves work on another stream that is never joined to this one"
                    .to_owned()
            }
            fault => format!(
                "the closure does something that a capture does not allow, such as waiting or \
                 allocating ({fault})"
            ),
        })?;
        let context = self.context;
        let exec = context.inside(|| {
            let exec = instantiate(graph);
            // SAFETY: the graph is our own, and not used after this.
            check(unsafe { sys::cuGraphDestroy(graph) })?;
            exec
        });
        let exec = exec.map_err(|fault| fault.to_string())?;
        let exec = exec.ok_or("the closure enqueued nothing on the stream")?;
        Ok(Replay { context, exec })
    }

    fn end(&mut self) -> Result<CUgraph, Fault> {
        self.is_over = true;
        IS_RECORDING.set(false);
        let graph: Cell<CUgraph> = Cell::new(ptr::null_mut());
        // SAFETY: the stream is live, as when the capture began; writes one handle.
        self.context.on_stream(self.stream, || unsafe {
            sys::cuStreamEndCapture(raw(self.stream), graph.as_ptr())
        })?;
        Ok(graph.get())
    }
}

/// Ends the capture if the closure panics, so that the stream stays usable, and explains the panic: the closure is
/// unaware of the capture.
impl Drop for ReplayCapture {
    fn drop(&mut self) {
        if self.is_over || fork::is_forked() {
            return;
        }
        console::say(
            "`Settle::graph`: the closure panicked during the capture, in which it cannot wait or \
             allocate",
        );
        if let Ok(graph) = self.end() {
            // SAFETY: the graph is our own, and not used after this.
            _ = self.context.inside(|| check(unsafe { sys::cuGraphDestroy(graph) }));
        }
    }
}

impl Replay {
    /// Enqueues one replay.
    pub fn launch(&self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: graph and stream are live and belong to the same context.
        self.context.on_stream(stream, || unsafe { sys::cuGraphLaunch(self.exec, raw(stream)) })
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // SAFETY: the graph is our own, and not used after this; the driver lets a running launch
        // finish first.
        _ = self.context.inside(|| check(unsafe { sys::cuGraphExecDestroy(self.exec) }));
    }
}

/// Returns an executable graph, or `None` if this graph has no nodes.
fn instantiate(graph: CUgraph) -> Result<Option<CUgraphExec>, Fault> {
    let mut nodes = 0;
    // SAFETY: the graph is alive; writes one number.
    check(unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &raw mut nodes) })?;
    if nodes == 0 {
        return Ok(None);
    }
    let mut exec: CUgraphExec = ptr::null_mut();
    // SAFETY: the graph is alive; writes one handle.
    check(unsafe { sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0) })?;
    Ok(Some(exec))
}
