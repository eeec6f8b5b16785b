//! Graphs: what they keep alive, and what may be made of them.
#![allow(unsafe_code)] // it talks to a driver

mod support;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cudarc::driver::sys::{
    self, CUgraph, CUgraphExec, CUgraphExecUpdateResult as Update, CUresult, CUstream,
    CUstreamCaptureMode, CUstreamCaptureStatus as Status, CUuserObject,
};
use support::*;

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count(by: *mut c_void) {
    DESTROYED.fetch_add(by as u32, Relaxed);
}

/// An object whose destruction counts so much.
fn object(counts: usize) -> CUuserObject {
    let mut object = ptr::null_mut();
    let by = ptr::without_provenance_mut(counts);
    // SAFETY: writes one handle; the destructor does not follow the pointer.
    ok(unsafe { sys::cuUserObjectCreate(&mut object, by, Some(count), 1, 1) });
    object
}

fn begin(stream: CUstream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) });
}

fn end(stream: CUstream) -> (CUresult, CUgraph) {
    let mut graph = ptr::null_mut();
    // SAFETY: the pointer is good for a result.
    (unsafe { sys::cuStreamEndCapture(stream, &mut graph) }, graph)
}

/// The status of the stream's capture, its id and its graph.
fn info(stream: CUstream) -> (Status, u64, CUgraph) {
    let (mut status, mut id, mut graph) =
        (Status::CU_STREAM_CAPTURE_STATUS_NONE, 0, ptr::null_mut());
    let none = ptr::null_mut();
    // SAFETY: the pointers are good for a result each, or null.
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

/// A graph with so many kernels between two external records, which keeps an object.
fn graph(stream: CUstream, kernels: &Kernels, count: usize, counts: usize) -> CUgraph {
    let (start, stop) = (event(), event());
    begin(stream);
    let (status, _, capturing) = info(stream);
    assert_eq!(status, Status::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    // SAFETY: the simulated driver checks handles.
    unsafe {
        ok(sys::cuGraphRetainUserObject(capturing, object(counts), 1, 1));
        ok(sys::cuEventRecordWithFlags(start, stream, 1));
        (0..count).for_each(|_| kernels.spin(stream, 20_000));
        ok(sys::cuEventRecordWithFlags(stop, stream, 1));
    }
    let (result, graph) = end(stream);
    ok(result);
    assert_eq!(graph, capturing);
    graph
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = ptr::null_mut();
    // SAFETY: the pointer is good for a result.
    ok(unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) });
    exec
}

fn update(exec: CUgraphExec, graph: CUgraph) -> (i32, Update) {
    let mut info = sys::CUgraphExecUpdateResultInfo {
        result: Update::CU_GRAPH_EXEC_UPDATE_ERROR,
        errorNode: ptr::null_mut(),
        errorFromNode: ptr::null_mut(),
    };
    // SAFETY: the pointer is good for a result.
    let result = unsafe { sys::cuGraphExecUpdate_v2(exec, graph, &mut info) };
    (result as i32, info.result)
}

#[test]
fn an_object_lives_as_long_as_what_refers_to_it() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
                // What it launched goes on.
                assert_eq!(destroyed(), 0);
                sync(stream);
                query(event());
                assert_eq!(destroyed(), 1);

                // An object may be kept by nobody, or given back by a graph.
                let lone = object(10);
                ok(sys::cuUserObjectRetain(lone, 2));
                ok(sys::cuUserObjectRelease(lone, 3));
                assert_eq!(destroyed(), 11);
                fails(1, sys::cuUserObjectRelease(lone, 1));
                begin(stream);
                let kept = object(100);
                ok(sys::cuGraphRetainUserObject(info(stream).2, kept, 1, 0));
                ok(sys::cuUserObjectRelease(kept, 1));
                ok(sys::cuGraphReleaseUserObject(info(stream).2, kept, 1));
                assert_eq!(destroyed(), 111);

                // A capture that is ruined takes its graph along.
                ok(sys::cuGraphRetainUserObject(info(stream).2, object(1_000), 1, 1));
                fails(900, sys::cuStreamSynchronize(stream));
                assert_eq!(destroyed(), 111);
                assert_eq!(end(stream).0 as i32, 901);
                assert_eq!(destroyed(), 1_111);
            }
        },
    )
    .passed();
}

#[test]
fn an_update_asks_for_the_same_shape() {
    child(
        this_test!(),
        |sim| sim,
        || {
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
                // What was updated has the references of what it was updated from.
                assert_eq!(DESTROYED.load(Relaxed), 101);
                ok(sys::cuGraphDestroy(same));
                assert_eq!(DESTROYED.load(Relaxed), 101);
                ok(sys::cuGraphExecDestroy(exec));
                assert_eq!(DESTROYED.load(Relaxed), 111);
            }
        },
    )
    .passed();
}

#[test]
fn a_graph_with_event_records_is_not_launched_from_the_device() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, stream) = (Kernels::load(), stream());
            let mut exec = ptr::null_mut();
            let graph = graph(stream, &kernels, 1, 1);
            begin(stream);
            kernels.spin(stream, 20_000);
            let plain = end(stream).1;
            // SAFETY: the pointer is good for a result.
            unsafe {
                fails(801, sys::cuGraphInstantiateWithFlags(&mut exec, graph, 4));
                ok(sys::cuGraphInstantiateWithFlags(&mut exec, plain, 4));
            }
        },
    )
    .passed();
}
