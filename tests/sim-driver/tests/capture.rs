//! Stream capture: what survives it, and what it makes.
#![allow(unsafe_code)] // it talks to a driver

mod support;

use std::ptr;
use std::thread;

use cudarc::driver::sys::{
    self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode as Mode,
    CUstreamCaptureStatus as Status,
};
use gpu_time_sim_driver::formula;
use support::*;

const MODES: [Mode; 3] = [
    Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
    Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
];

fn begin(stream: CUstream, mode: Mode) {
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) });
}

fn end(stream: CUstream) -> Result<CUgraph, i32> {
    let mut graph = ptr::null_mut();
    // SAFETY: the pointer is good for a result.
    match unsafe { sys::cuStreamEndCapture(stream, &mut graph) } as i32 {
        0 => Ok(graph),
        code => Err(code),
    }
}

fn status(stream: CUstream) -> Result<Status, i32> {
    let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the pointer is good for a result.
    match unsafe { sys::cuStreamIsCapturing(stream, &mut status) } as i32 {
        0 => Ok(status),
        code => Err(code),
    }
}

fn exchange(mut mode: Mode) -> Mode {
    // SAFETY: the pointer is good for a value and a result.
    ok(unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) });
    mode
}

fn nodes(graph: CUgraph) -> usize {
    let mut count = 0;
    // SAFETY: without a place for handles only the number is answered.
    ok(unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut count) });
    count
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = ptr::null_mut();
    // SAFETY: the pointer is good for a result.
    ok(unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) });
    exec
}

#[test]
fn a_query_ruins_the_captures_that_it_can() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (stream, unrelated) = (stream(), event());
            let event = unrelated as u64;
            let query = move || query(event as sys::CUevent);
            // Mode, and whether it survives a query of the same thread, and of another.
            for (mode, same, other) in
                [(MODES[0], false, false), (MODES[1], false, true), (MODES[2], true, true)]
            {
                begin(stream, mode);
                assert_eq!(query(), if same { 0 } else { 900 });
                assert_eq!(end(stream).err(), (!same).then_some(901));

                begin(stream, mode);
                let answer = thread::spawn(query).join().unwrap();
                assert_eq!(answer, if other { 0 } else { 900 });
                assert_eq!(end(stream).err(), (!other).then_some(901));

                // In relaxed mode anybody may.
                begin(stream, mode);
                let relaxed = move || {
                    let before = exchange(MODES[2]);
                    assert_eq!((query(), exchange(before)), (0, MODES[2]));
                    before
                };
                assert_eq!(relaxed(), MODES[0]);
                assert_eq!(thread::spawn(relaxed).join().unwrap(), MODES[0]);
                assert!(end(stream).is_ok());
            }
        },
    )
    .passed();
    assert_eq!(outcome.trace.notes("capture_invalidated").count(), 3);
}

#[test]
fn some_calls_are_safe_and_some_are_not() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, plain, other) = (Kernels::load(), stream(), stream());
            let (start, stop) = (event(), event());
            record(start, other);
            record(stop, other);
            sync(other);
            begin(plain, MODES[0]);
            assert_eq!(elapsed(start, stop), Ok(1_280));
            assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_ACTIVE));
            assert_eq!(status(other), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
            event();
            launch(kernels.empty, other, &mut []);
            record(start, other);
            assert!(end(plain).is_ok());
            let mut address = 0;
            let mut host = ptr::null_mut();
            let mut module = ptr::null_mut();
            let text = std::ffi::CString::new(ptx(&[])).unwrap();
            // SAFETY: each pointer is good for a result, and the text ends in NUL.
            let mut forbidden: [&mut dyn FnMut() -> sys::CUresult; 7] = unsafe {
                [
                    &mut || sys::cuMemAlloc_v2(&mut address, 16),
                    &mut || sys::cuMemHostAlloc(&mut host, 16, 0),
                    &mut || sys::cuModuleLoadData(&mut module, text.as_ptr().cast()),
                    &mut || sys::cuEventSynchronize(stop),
                    &mut || sys::cuStreamSynchronize(other),
                    &mut || sys::cuStreamQuery(other),
                    &mut || sys::cuCtxSynchronize(),
                ]
            };
            for call in &mut forbidden {
                begin(plain, MODES[0]);
                fails(900, call());
                assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_INVALIDATED));
                fails(901, try_launch(kernels.empty, plain, &mut []));
                assert_eq!(end(plain), Err(901));
                assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
            }
            // The capturing stream itself cannot be waited for, whatever the mode.
            begin(plain, MODES[2]);
            // SAFETY: the simulated driver checks handles.
            fails(900, unsafe { sys::cuStreamSynchronize(plain) });
            assert_eq!(end(plain), Err(901));
        },
    )
    .passed();
}

#[test]
fn the_legacy_stream_may_not_be_used_beside_a_blocking_one() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, legacy) = (Kernels::load(), ptr::null_mut());
            let (blocking, independent, event) = (stream_with(0), stream_with(1), event());
            begin(independent, MODES[0]);
            launch(kernels.empty, legacy, &mut []);
            record(event, legacy);
            assert_eq!(status(legacy), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
            assert!(end(independent).is_ok());

            begin(blocking, MODES[0]);
            // Asking does no harm.
            assert_eq!(status(legacy), Err(906));
            assert!(end(blocking).is_ok());
            begin(blocking, MODES[0]);
            fails(906, try_launch(kernels.empty, legacy, &mut []));
            assert_eq!(end(blocking), Err(901));
            begin(blocking, MODES[0]);
            // SAFETY: the simulated driver checks handles.
            fails(906, unsafe { sys::cuEventRecord(event, legacy) });
            assert_eq!(end(blocking), Err(901));
            // SAFETY: as above.
            fails(900, unsafe { sys::cuStreamBeginCapture_v2(legacy, MODES[0]) });
        },
    )
    .passed();
}

#[test]
fn a_graph_runs_what_was_captured() {
    let outcome = child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, stream) = (Kernels::load(), stream());
            let (start, stop, plain) = (event(), event(), event());
            let (x, y) = (device_memory(64), device_memory(64));
            let (n, a) = (16_u32, 1.0_f32);
            begin(stream, MODES[0]);
            // SAFETY: the memory is as long as it says, and the simulated driver checks handles.
            unsafe {
                ok(sys::cuMemsetD32Async(x, 1.0_f32.to_bits(), 16, stream));
                ok(sys::cuEventRecordWithFlags(start, stream, 1));
                kernels.spin(stream, 20_000);
                launch(kernels.saxpy, stream, &mut [arg(&n), arg(&a), arg(&x), arg(&y)]);
                ok(sys::cuEventRecordWithFlags(stop, stream, 1));
            }
            record(plain, stream);
            let graph = end(stream).unwrap();
            // The plain record made no node, and has no time.
            assert_eq!((nodes(graph), elapsed(plain, plain)), (5, Err(1)));
            assert_eq!(query(plain), 907);
            assert_eq!(elapsed(start, stop), Err(400));
            let exec = instantiate(graph);
            // SAFETY: the simulated driver checks handles, and the memory is as long as it says.
            unsafe {
                ok(sys::cuGraphDestroy(graph));
                ok(sys::cuMemsetD8_v2(y, 0, 64));
                for launch in 1..=3 {
                    ok(sys::cuGraphLaunch(exec, stream));
                    sync(stream);
                    let measured = elapsed(start, stop).unwrap();
                    // In a graph the nodes follow each other closely; a saxpy of 64 bytes takes 1.4 us.
                    let spin = formula::spin_ns(20_000) + 120;
                    assert!((measured as i64 - (spin + 1_400 + 120 + 1_280) as i64).abs() < 96);
                    let mut result = [0.0_f32; 16];
                    ok(sys::cuMemcpyDtoH_v2(result.as_mut_ptr().cast(), y, 64));
                    assert_eq!(result, [launch as f32; 16]);
                }
                ok(sys::cuGraphExecDestroy(exec));
            }
            // Recorded outside of a capture again, an event is like any other.
            record(plain, stream);
            sync(stream);
            assert_eq!(elapsed(plain, plain), Ok(0));
        },
    )
    .passed();
    assert_eq!(outcome.trace.kernels("spin_ns").filter(|kernel| kernel.graph).count(), 3);
    for sample in outcome.trace.elapsed() {
        assert_eq!(sample.reported_ns, sample.expected_ns());
    }
}

#[test]
fn a_capture_spreads_by_events_and_has_to_come_back() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let (kernels, main, side) = (Kernels::load(), stream(), stream());
            let (fork, join) = (event(), event());
            // SAFETY: the simulated driver checks handles.
            let wait = |stream, event| ok(unsafe { sys::cuStreamWaitEvent(stream, event, 0) });
            for joined in [true, false] {
                begin(main, MODES[1]);
                record(fork, main);
                wait(side, fork);
                assert_eq!(status(side), Ok(Status::CU_STREAM_CAPTURE_STATUS_ACTIVE));
                launch(kernels.empty, side, &mut []);
                record(join, side);
                if joined {
                    wait(main, join);
                    launch(kernels.empty, main, &mut []);
                    assert_eq!(nodes(end(main).unwrap()), 2);
                } else {
                    assert_eq!(end(main), Err(904));
                }
                assert_eq!(status(side), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
            }
            // Work from outside cannot be waited for inside.
            record(fork, side);
            begin(main, MODES[1]);
            // SAFETY: the simulated driver checks handles.
            fails(905, unsafe { sys::cuStreamWaitEvent(main, fork, 0) });
            assert_eq!(end(main), Err(901));
        },
    )
    .passed();
}

#[test]
fn a_capture_ends_where_it_began() {
    child(
        this_test!(),
        |sim| sim,
        || {
            start();
            let stream = stream();
            let handle = stream as u64;
            assert_eq!(end(stream), Err(401));
            begin(stream, MODES[1]);
            // SAFETY: the simulated driver checks handles.
            fails(401, unsafe { sys::cuStreamBeginCapture_v2(stream, MODES[1]) });
            let elsewhere = move || end(handle as CUstream).map(drop);
            assert_eq!(thread::spawn(elsewhere).join().unwrap(), Err(908));
            assert!(end(stream).is_ok());
            begin(stream, MODES[2]);
            assert_eq!(thread::spawn(elsewhere).join().unwrap(), Ok(()));
        },
    )
    .passed();
}
