//! The driver functions that capture and replay a graph.

use std::ffi::{c_uint, c_void};
use std::ptr;

use cudarc::driver::sys::{CUresult, CUstream};
use libloading::Library;

use crate::cuda::result::check;
use crate::gpu::Fault;

pub(super) type Graph = *mut c_void;
pub(super) type Exec = *mut c_void;
type BeginCapture = unsafe extern "C" fn(CUstream, c_uint) -> CUresult;
type EndCapture = unsafe extern "C" fn(CUstream, *mut Graph) -> CUresult;
type GetNodes = unsafe extern "C" fn(Graph, *mut *mut c_void, *mut usize) -> CUresult;
type Instantiate = unsafe extern "C" fn(*mut Exec, Graph, u64) -> CUresult;
type LaunchGraph = unsafe extern "C" fn(Exec, CUstream) -> CUresult;
type Destroy = unsafe extern "C" fn(*mut c_void) -> CUresult;

/// Functions of drivers since CUDA 11.4. Without all of them nothing is replayed.
pub(super) struct ReplaySymbols {
    pub begin: BeginCapture,
    pub end: EndCapture,
    nodes: GetNodes,
    instantiate: Instantiate,
    pub launch: LaunchGraph,
    pub destroy: Destroy,
    pub destroy_exec: Destroy,
}

impl ReplaySymbols {
    pub fn load(library: &Library) -> Option<ReplaySymbols> {
        // SAFETY: in every driver that has them, these functions have these signatures.
        unsafe {
            Some(ReplaySymbols {
                begin: *library.get::<BeginCapture>("cuStreamBeginCapture_v2").ok()?,
                end: *library.get::<EndCapture>("cuStreamEndCapture").ok()?,
                nodes: *library.get::<GetNodes>("cuGraphGetNodes").ok()?,
                instantiate: *library.get::<Instantiate>("cuGraphInstantiateWithFlags").ok()?,
                launch: *library.get::<LaunchGraph>("cuGraphLaunch").ok()?,
                destroy: *library.get::<Destroy>("cuGraphDestroy").ok()?,
                destroy_exec: *library.get::<Destroy>("cuGraphExecDestroy").ok()?,
            })
        }
    }

    /// Returns an executable graph, or `None` if this graph has no nodes.
    pub fn instantiate(&self, graph: Graph) -> Result<Option<Exec>, Fault> {
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
