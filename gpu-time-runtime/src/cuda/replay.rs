//! A graph of what the calling thread enqueues on a stream, and its replays.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::sys::{CUresult, CUstream, CUstreamCaptureStatus};
use libloading::Library;

use super::context::Context;
use super::{check, raw};
use crate::gpu::{Fault, Gpu, Stream};

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: what other threads do is their own affair.
const THREAD_LOCAL: c_uint = 1;
const UNJOINED: u32 = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED as u32;

type Graph = *mut c_void;
type Exec = *mut c_void;
type Begin = unsafe extern "C" fn(CUstream, c_uint) -> CUresult;
type End = unsafe extern "C" fn(CUstream, *mut Graph) -> CUresult;
type Nodes = unsafe extern "C" fn(Graph, *mut *mut c_void, *mut usize) -> CUresult;
type Instantiate = unsafe extern "C" fn(*mut Exec, Graph, u64) -> CUresult;
type Launch = unsafe extern "C" fn(Exec, CUstream) -> CUresult;
type Destroy = unsafe extern "C" fn(*mut c_void) -> CUresult;

/// The functions that drivers have since CUDA 11.4. Without one of them nothing is replayed.
pub(super) struct ReplaySymbols {
    begin: Begin,
    end: End,
    nodes: Nodes,
    instantiate: Instantiate,
    launch: Launch,
    destroy: Destroy,
    destroy_exec: Destroy,
}

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread records calls to replay them, whose graph gets no nodes of ours.
pub(crate) fn is_recording() -> bool {
    IS_RECORDING.get()
}

/// Why there is no graph, or none that can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Null,
    Captured,
    Ruined(Fault),
    Unjoined,
    Empty,
    Old,
    Failed(Fault),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Null => f.write_str("the NULL stream cannot be captured"),
            Refusal::Captured => f.write_str("the stream was being captured already"),
            Refusal::Ruined(fault) => write!(
                f,
                "the closure does what no capture allows, such as to wait or to allocate ({fault})"
            ),
            Refusal::Unjoined => {
                f.write_str("the closure leaves work on another stream, which this one never meets")
            }
            Refusal::Empty => f.write_str("the closure enqueued nothing on the stream"),
            Refusal::Old => f.write_str("the CUDA driver is too old for it"),
            Refusal::Failed(fault) => write!(f, "{fault}"),
        }
    }
}

/// A capture of ours.
///
/// Invariant: it goes on until this is finished or dropped, on the thread that began it.
pub(crate) struct Recording {
    context: &'static Context,
    symbols: &'static ReplaySymbols,
    stream: Stream,
    is_over: bool,
    thread: PhantomData<*const ()>,
}

/// A graph that can be launched again and again.
pub(crate) struct Replay {
    context: &'static Context,
    symbols: &'static ReplaySymbols,
    exec: Exec,
}

impl ReplaySymbols {
    pub fn load(library: &Library) -> Option<ReplaySymbols> {
        // SAFETY: in every driver that has them, these functions have these signatures.
        unsafe {
            Some(ReplaySymbols {
                begin: *library.get::<Begin>("cuStreamBeginCapture_v2").ok()?,
                end: *library.get::<End>("cuStreamEndCapture").ok()?,
                nodes: *library.get::<Nodes>("cuGraphGetNodes").ok()?,
                instantiate: *library.get::<Instantiate>("cuGraphInstantiateWithFlags").ok()?,
                launch: *library.get::<Launch>("cuGraphLaunch").ok()?,
                destroy: *library.get::<Destroy>("cuGraphDestroy").ok()?,
                destroy_exec: *library.get::<Destroy>("cuGraphExecDestroy").ok()?,
            })
        }
    }

    /// A graph that can be launched, if this one has any nodes.
    fn instantiate(&self, graph: Graph) -> Result<Option<Exec>, Fault> {
        let mut nodes = 0;
        // SAFETY: the graph is alive; writes one number.
        check(unsafe { (self.nodes)(graph, ptr::null_mut(), &raw mut nodes) })?;
        if nodes == 0 {
            return Ok(None);
        }
        let mut exec: Exec = ptr::null_mut();
        // SAFETY: the graph is alive; writes one handle.
        check(unsafe { (self.instantiate)(&raw mut exec, graph, 0) })?;
        Ok(Some(exec))
    }
}

impl Context {
    /// Has everything that the calling thread enqueues on the stream become nodes of a graph instead.
    pub fn record_calls(&'static self, stream: Stream) -> Result<Recording, Refusal> {
        let symbols = self.symbols.replay.as_ref().ok_or(Refusal::Old)?;
        if stream.is_legacy() {
            return Err(Refusal::Null);
        }
        if self.is_capturing(stream).map_err(Refusal::Failed)? {
            return Err(Refusal::Captured);
        }
        // SAFETY: the stream is live, by the word of whoever gave it.
        let begun =
            self.on_stream(stream, || unsafe { (symbols.begin)(raw(stream), THREAD_LOCAL) });
        begun.map_err(Refusal::Failed)?;
        IS_RECORDING.set(true);
        Ok(Recording { context: self, symbols, stream, is_over: false, thread: PhantomData })
    }
}

impl Recording {
    /// Whether nothing has ruined it so far.
    pub fn is_whole(&self) -> bool {
        let status = self.context.capture_status(self.stream);
        status == Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE)
    }

    /// Ends the capture, also one that was ruined, and makes its graph ready.
    pub fn finish(mut self) -> Result<Replay, Refusal> {
        let graph = self.end().map_err(|fault| match fault {
            Fault::Code(UNJOINED) => Refusal::Unjoined,
            fault => Refusal::Ruined(fault),
        })?;
        let (context, symbols) = (self.context, self.symbols);
        let exec = context.inside(|| {
            let exec = symbols.instantiate(graph);
            // SAFETY: it is ours, and nobody has it after this.
            check(unsafe { (symbols.destroy)(graph) })?;
            exec
        });
        let exec = exec.map_err(Refusal::Failed)?.ok_or(Refusal::Empty)?;
        Ok(Replay { context, symbols, exec })
    }

    fn end(&mut self) -> Result<Graph, Fault> {
        self.is_over = true;
        IS_RECORDING.set(false);
        let graph: Cell<Graph> = Cell::new(ptr::null_mut());
        // SAFETY: the stream is live, as at the beginning; writes one handle.
        self.context.on_stream(self.stream, || unsafe {
            (self.symbols.end)(raw(self.stream), graph.as_ptr())
        })?;
        Ok(graph.get())
    }
}

/// The closure unwinds: its stream is to be of use all the same.
impl Drop for Recording {
    fn drop(&mut self) {
        if !self.is_over
            && let Ok(graph) = self.end()
        {
            // SAFETY: it is ours, and nobody has it after this.
            _ = self.context.inside(|| check(unsafe { (self.symbols.destroy)(graph) }));
        }
    }
}

impl Replay {
    /// Enqueues it.
    pub fn launch(&self, stream: Stream) -> Result<(), Fault> {
        // SAFETY: both are live, and of one context.
        self.context.on_stream(stream, || unsafe { (self.symbols.launch)(self.exec, raw(stream)) })
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody has it after this; a launch that goes on ends first.
        _ = self.context.inside(|| check(unsafe { (self.symbols.destroy_exec)(self.exec) }));
    }
}
