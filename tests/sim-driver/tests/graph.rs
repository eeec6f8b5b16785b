//! Tests for graphs: user objects, updates, and instantiation for device-side launches.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cudarc::driver::sys::{
    self, CUgraph, CUgraphExec, CUgraphExecUpdateResult as Update, CUstream, CUstreamCaptureMode,
    CUstreamCaptureStatus as Status, CUuserObject,
};
use support::*;

const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count(by: *mut c_void) {
    DESTROYED.fetch_add(by as u32, Relaxed);
}

/// Creates a user object whose destructor adds `weight` to `DESTROYED`.
fn object(weight: usize) -> CUuserObject {
    let mut object = ptr::null_mut();
    let by = ptr::without_provenance_mut(weight);
    // SAFETY: the call writes one handle, and the destructor does not dereference the pointer.
    ok(unsafe { sys::cuUserObjectCreate(&mut object, by, Some(count), 1, 1) });
    object
}

/// Returns the status, the id and the graph of the stream's capture.
fn info(stream: CUstream) -> (Status, u64, CUgraph) {
    let (mut status, mut id, mut graph) =
        (Status::CU_STREAM_CAPTURE_STATUS_NONE, 0, ptr::null_mut());
    let none = ptr::null_mut();
    // SAFETY: each pointer is null or valid for a result.
    ok(unsafe {
        sys::cuStreamGetCaptureInfo_v3(
            stream,
            &mut status,
            &mut id,
            &mut graph,
            none,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    });
    (status, id, graph)
}

/// Captures a graph that contains `count` kernels between two external records and keeps a user
/// object.
fn graph(stream: CUstream, kernels: &Kernels, count: usize, weight: usize) -> CUgraph {
    let (start, stop) = (event(), event());
    begin_capture(stream, MODE);
    let (status, _, capturing) = info(stream);
    assert_eq!(status, Status::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    // SAFETY: the simulated driver checks handles.
    unsafe {
        ok(sys::cuGraphRetainUserObject(capturing, object(weight), 1, 1));
        ok(sys::cuEventRecordWithFlags(start, stream, 1));
        (0..count).for_each(|_| kernels.spin(stream, 20_000));
        ok(sys::cuEventRecordWithFlags(stop, stream, 1));
    }
    let graph = end_capture(stream).unwrap();
    assert_eq!(graph, capturing);
    graph
}

fn update(exec: CUgraphExec, graph: CUgraph) -> (i32, Update) {
    let mut info = sys::CUgraphExecUpdateResultInfo {
        result: Update::CU_GRAPH_EXEC_UPDATE_ERROR,
        errorNode: ptr::null_mut(),
        errorFromNode: ptr::null_mut(),
    };
    // SAFETY: the pointer is valid for a result.
    let result = unsafe { sys::cuGraphExecUpdate_v2(exec, graph, &mut info) };
    (result as i32, info.result)
}

#[test]
fn user_object_lives_until_last_reference() {
    child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let destroyed = || DESTROYED.load(Relaxed);
        let graph = graph(stream, &kernels, 1, 1);
        let exec = instantiate(graph);
        // SAFETY: the simulated driver checks handles.
        unsafe {
            ok(sys::cuGraphDestroy(graph));
            assert_eq!(destroyed(), 0);
            ok(sys::cuGraphLaunch(exec, stream));
            ok(sys::cuGraphExecDestroy(exec));
            // The launch is still in progress.
            assert_eq!(destroyed(), 0);
            sync(stream);
            query(event());
            assert_eq!(destroyed(), 1);

            // References held by the program or by a graph can be released explicitly.
            let lone = object(10);
            ok(sys::cuUserObjectRetain(lone, 2));
            ok(sys::cuUserObjectRelease(lone, 3));
            assert_eq!(destroyed(), 11);
            fails(1, sys::cuUserObjectRelease(lone, 1));
            begin_capture(stream, MODE);
            let kept = object(100);
            ok(sys::cuGraphRetainUserObject(info(stream).2, kept, 1, 0));
            ok(sys::cuUserObjectRelease(kept, 1));
            ok(sys::cuGraphReleaseUserObject(info(stream).2, kept, 1));
            assert_eq!(destroyed(), 111);

            // Ending an invalidated capture destroys its graph.
            ok(sys::cuGraphRetainUserObject(info(stream).2, object(1_000), 1, 1));
            fails(900, sys::cuStreamSynchronize(stream));
            assert_eq!(destroyed(), 111);
            assert_eq!(end_capture(stream), Err(901));
            assert_eq!(destroyed(), 1_111);
        }
    });
}

#[test]
fn exec_update_requires_same_topology() {
    child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let first = graph(stream, &kernels, 2, 1);
        let exec = instantiate(first);
        let same = graph(stream, &kernels, 2, 10);
        let longer = graph(stream, &kernels, 3, 100);
        assert_eq!(update(exec, same), (0, Update::CU_GRAPH_EXEC_UPDATE_SUCCESS));
        let changed = Update::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        assert_eq!(update(exec, longer), (910, changed));
        // SAFETY: the simulated driver checks handles.
        unsafe {
            ok(sys::cuGraphDestroy(first));
            ok(sys::cuGraphDestroy(longer));
            // The updated executable graph now holds references from the graph used to update it.
            assert_eq!(DESTROYED.load(Relaxed), 101);
            ok(sys::cuGraphDestroy(same));
            assert_eq!(DESTROYED.load(Relaxed), 101);
            ok(sys::cuGraphExecDestroy(exec));
            assert_eq!(DESTROYED.load(Relaxed), 111);
        }
    });
}

#[test]
fn device_launch_rejects_event_records() {
    child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let mut exec = ptr::null_mut();
        let graph = graph(stream, &kernels, 1, 1);
        begin_capture(stream, MODE);
        kernels.spin(stream, 20_000);
        let plain = end_capture(stream).unwrap();
        // SAFETY: the pointer is valid for a result.
        unsafe {
            fails(801, sys::cuGraphInstantiateWithFlags(&mut exec, graph, 4));
            ok(sys::cuGraphInstantiateWithFlags(&mut exec, plain, 4));
        }
    });
}
