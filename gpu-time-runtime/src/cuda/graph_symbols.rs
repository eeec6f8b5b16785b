//! The driver functions that time launches inside graphs.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Release};

use cudarc::driver::sys::{CUevent, CUresult, CUstream, CUstreamCaptureStatus as Status};
use libloading::Library;

use crate::cuda::result::{check, raw};
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, the only flag that there is.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: our reference becomes the graph's.
const MOVE: c_uint = 1;

type Graph = *mut c_void;
type Object = *mut c_void;
type Destructor = unsafe extern "C" fn(*mut c_void);
type InfoV2 = unsafe extern "C" fn(
    CUstream,
    *mut Status,
    *mut u64,
    *mut Graph,
    *mut *const c_void,
    *mut usize,
) -> CUresult;
type InfoV3 = unsafe extern "C" fn(
    CUstream,
    *mut Status,
    *mut u64,
    *mut Graph,
    *mut *const c_void,
    *mut *const c_void,
    *mut usize,
) -> CUresult;
type RecordEvent = unsafe extern "C" fn(CUevent, CUstream, c_uint) -> CUresult;
type CreateObject =
    unsafe extern "C" fn(*mut Object, *mut c_void, Destructor, c_uint, c_uint) -> CUresult;
type ReleaseObject = unsafe extern "C" fn(Object, c_uint) -> CUresult;
type RetainObject = unsafe extern "C" fn(Graph, Object, c_uint, c_uint) -> CUresult;

/// Functions of drivers since CUDA 11.3. Without all of them no graph is timed.
pub(super) struct GraphSymbols {
    info: CaptureInfo,
    pub record: RecordEvent,
    create_object: CreateObject,
    release_object: ReleaseObject,
    retain: RetainObject,
}

#[derive(Clone, Copy)]
enum CaptureInfo {
    V2(InfoV2),
    V3(InfoV3),
}

/// A capture under way, and its graph.
pub(crate) struct Capture {
    pub id: u64,
    /// The stream's next node depends on no other: it will be a root of the graph.
    pub is_at_root: bool,
    graph: Graph,
}

/// The error of a graph that could not be given an object to keep.
pub(crate) struct KeepError {
    pub fault: Fault,
    /// The destructor will run even so, at some time.
    pub is_released: bool,
}

impl GraphSymbols {
    pub fn load(library: &Library) -> Option<GraphSymbols> {
        // SAFETY: in every driver that has them, these functions have these signatures.
        unsafe {
            let info = match library.get::<InfoV2>("cuStreamGetCaptureInfo_v2") {
                Ok(info) => CaptureInfo::V2(*info),
                Err(_) => {
                    CaptureInfo::V3(*library.get::<InfoV3>("cuStreamGetCaptureInfo_v3").ok()?)
                }
            };
            Some(GraphSymbols {
                info,
                record: *library.get::<RecordEvent>("cuEventRecordWithFlags").ok()?,
                create_object: *library.get::<CreateObject>("cuUserObjectCreate").ok()?,
                release_object: *library.get::<ReleaseObject>("cuUserObjectRelease").ok()?,
                retain: *library.get::<RetainObject>("cuGraphRetainUserObject").ok()?,
            })
        }
    }

    /// Returns the capture of the stream, if there is one and it can still become a graph.
    pub fn capture(&self, stream: Stream) -> Result<Option<Capture>, Fault> {
        let (mut status, mut id) = (Status::CU_STREAM_CAPTURE_STATUS_NONE, 0);
        let mut graph: Graph = ptr::null_mut();
        let (no_nodes, no_edges, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
        let stream = raw(stream);
        // SAFETY: writes a status, two numbers and a handle; the optional results are not
        // requested.
        check(unsafe {
            match self.info {
                CaptureInfo::V2(info) => info(
                    stream,
                    &raw mut status,
                    &raw mut id,
                    &raw mut graph,
                    no_nodes,
                    &raw mut count,
                ),
                CaptureInfo::V3(info) => info(
                    stream,
                    &raw mut status,
                    &raw mut id,
                    &raw mut graph,
                    no_nodes,
                    no_edges,
                    &raw mut count,
                ),
            }
        })?;
        let is_active = status == Status::CU_STREAM_CAPTURE_STATUS_ACTIVE && !graph.is_null();
        Ok(is_active.then_some(Capture { id, is_at_root: count == 0, graph }))
    }

    /// Makes the graph keep an object whose destructor sets `released`.
    pub fn keep(&self, capture: &Capture, released: &'static AtomicBool) -> Result<(), KeepError> {
        let mut object: Object = ptr::null_mut();
        let flag = ptr::from_ref(released).cast_mut().cast();
        // SAFETY: writes one handle; the flag is never freed.
        check(unsafe {
            (self.create_object)(&raw mut object, flag, release, 1, NO_DESTRUCTOR_SYNC)
        })
        .map_err(|fault| KeepError { fault, is_released: false })?;
        // SAFETY: the graph is being captured, which allows this, and the reference is our own.
        check(unsafe { (self.retain)(capture.graph, object, 1, MOVE) }).map_err(|fault| {
            // SAFETY: the reference is still our own, and not used after this.
            _ = check(unsafe { (self.release_object)(object, 1) });
            KeepError { fault, is_released: true }
        })
    }
}

/// Runs when the last graph with these events has been destroyed, on a driver thread that must not
/// make driver calls.
unsafe extern "C" fn release(flag: *mut c_void) {
    // SAFETY: it is the flag given to `keep`, which is never freed.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Release);
}
