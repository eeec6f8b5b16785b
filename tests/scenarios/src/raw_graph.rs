//! Captures and graphs by calls of the driver's, beside cudarc's own.

use std::ptr;

use cudarc::driver::{CudaStream, DriverError, sys};
use sys::CUstreamCaptureMode as Mode;

/// As the argument of a scenario calls it.
pub fn mode(name: &str) -> Mode {
    match name {
        "global" => Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        "thread_local" => Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        "relaxed" => Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        _ => panic!("`{name}` is no mode"),
    }
}

pub fn begin(stream: &CudaStream, mode: Mode) {
    // SAFETY: the stream is alive.
    unsafe { sys::cuStreamBeginCapture_v2(stream.cu_stream(), mode) }.result().unwrap();
}

/// Ends a capture; the graph is the caller's.
pub fn end(stream: &CudaStream) -> sys::CUgraph {
    let mut graph = ptr::null_mut();
    // SAFETY: writes one handle.
    unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &raw mut graph) }.result().unwrap();
    graph
}

pub fn capture(stream: &CudaStream, work: impl FnOnce()) -> sys::CUgraph {
    begin(stream, mode("global"));
    work();
    end(stream)
}

/// How many there are.
pub fn nodes(graph: sys::CUgraph) -> usize {
    let mut nodes = 0;
    // SAFETY: asks for the number only.
    unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &raw mut nodes) }.result().unwrap();
    nodes
}

/// A graph that can be launched.
pub struct Exec(sys::CUgraphExec);

impl Exec {
    /// Takes the graph, which is not needed any more.
    pub fn new(graph: sys::CUgraph) -> Exec {
        let mut exec = ptr::null_mut();
        // SAFETY: writes one handle; the graph is alive, and nobody has it after this.
        unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0).result().unwrap();
            sys::cuGraphDestroy(graph).result().unwrap();
        }
        Exec(exec)
    }

    /// Takes the graph, for kernels to launch.
    pub fn for_device(graph: sys::CUgraph) -> Result<Exec, DriverError> {
        let flag = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
        let mut exec = ptr::null_mut();
        // SAFETY: writes one handle; the graph is alive, and nobody has it after this.
        unsafe {
            let made = sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, u64::from(flag.0));
            sys::cuGraphDestroy(graph).result().unwrap();
            made.result()?;
        }
        Ok(Exec(exec))
    }

    /// Whether the shape of the graph, which it takes, was the same.
    pub fn update(&self, graph: sys::CUgraph) -> bool {
        let mut info = sys::CUgraphExecUpdateResultInfo {
            result: sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
            errorNode: ptr::null_mut(),
            errorFromNode: ptr::null_mut(),
        };
        // SAFETY: both are alive; writes one result.
        unsafe {
            let updated = sys::cuGraphExecUpdate_v2(self.0, graph, &raw mut info);
            sys::cuGraphDestroy(graph).result().unwrap();
            updated.result().is_ok()
        }
    }

    pub fn launch(&self, stream: &CudaStream) {
        // SAFETY: both are alive.
        unsafe { sys::cuGraphLaunch(self.0, stream.cu_stream()) }.result().unwrap();
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        // SAFETY: nobody has it after this.
        unsafe { sys::cuGraphExecDestroy(self.0) }.result().unwrap();
    }
}
