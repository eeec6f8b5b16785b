//! Captures and graphs through driver calls that cudarc does not wrap.

use std::ptr;

use cudarc::driver::{CudaStream, DriverError, sys};
use sys::CUstreamCaptureMode as Mode;

/// Parses the capture mode given as an argument to the scenario.
pub fn mode(name: &str) -> Mode {
    match name {
        "global" => Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        "thread_local" => Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        "relaxed" => Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        _ => panic!("unknown capture mode `{name}`"),
    }
}

pub fn begin(stream: &CudaStream, mode: Mode) {
    // SAFETY: the stream is alive.
    unsafe { sys::cuStreamBeginCapture_v2(stream.cu_stream(), mode) }.result().unwrap();
}

/// Ends a capture and returns the graph, which the caller owns.
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

/// Returns the number of nodes.
pub fn nodes(graph: sys::CUgraph) -> usize {
    let mut nodes = 0;
    // SAFETY: writes only the number of nodes.
    unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &raw mut nodes) }.result().unwrap();
    nodes
}

/// An instantiated graph.
pub struct Exec(sys::CUgraphExec);

impl Exec {
    /// Instantiates the graph, then destroys it.
    pub fn new(graph: sys::CUgraph) -> Exec {
        let mut exec = ptr::null_mut();
        // SAFETY: writes one handle; the graph is alive and not used afterwards.
        unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0).result().unwrap();
            sys::cuGraphDestroy(graph).result().unwrap();
        }
        Exec(exec)
    }

    /// Instantiates the graph for launches from kernels, then destroys it.
    pub fn for_device(graph: sys::CUgraph) -> Result<Exec, DriverError> {
        let flag = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
        let mut exec = ptr::null_mut();
        // SAFETY: writes one handle; the graph is alive and not used afterwards.
        unsafe {
            let made = sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, u64::from(flag.0));
            sys::cuGraphDestroy(graph).result().unwrap();
            made.result()?;
        }
        Ok(Exec(exec))
    }

    /// Updates this graph from `graph`, then destroys `graph`. Returns `true` if both have the same
    /// shape.
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
        // SAFETY: the handle is not used afterwards.
        unsafe { sys::cuGraphExecDestroy(self.0) }.result().unwrap();
    }
}
