//! Tests for stream capture: the rules of the three modes, invalidation, and the resulting graphs.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ptr;
use std::thread;

use cudarc::driver::sys::{
    self, CUgraph, CUstream, CUstreamCaptureMode as Mode, CUstreamCaptureStatus as Status,
};
use gpu_time_sim_driver::formula;
use support::*;

const MODES: [Mode; 3] = [
    Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
    Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
];

fn status(stream: CUstream) -> Result<Status, i32> {
    let mut status = Status::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the pointer is valid for a result.
    match unsafe { sys::cuStreamIsCapturing(stream, &mut status) } as i32 {
        0 => Ok(status),
        code => Err(code),
    }
}

fn exchange(mut mode: Mode) -> Mode {
    // SAFETY: the pointer is valid for a value and a result.
    ok(unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) });
    mode
}

fn nodes(graph: CUgraph) -> usize {
    let mut count = 0;
    // SAFETY: with a null handle pointer, only the count is returned.
    ok(unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut count) });
    count
}

#[test]
fn query_invalidates_captures_by_mode_and_thread() {
    let outcome = child!().run(|| {
        start();
        let (stream, unrelated) = (stream(), event());
        let event = unrelated as u64;
        let query = move || query(event as sys::CUevent);
        // The mode, and whether the capture survives a query by the same thread and by another
        // thread.
        for (mode, same, other) in
            [(MODES[0], false, false), (MODES[1], false, true), (MODES[2], true, true)]
        {
            begin_capture(stream, mode);
            assert_eq!(query(), if same { 0 } else { 900 });
            assert_eq!(end_capture(stream).err(), (!same).then_some(901));

            begin_capture(stream, mode);
            let answer = thread::spawn(query).join().unwrap();
            assert_eq!(answer, if other { 0 } else { 900 });
            assert_eq!(end_capture(stream).err(), (!other).then_some(901));

            // A thread in relaxed mode may query during any capture.
            begin_capture(stream, mode);
            let relaxed = move || {
                let before = exchange(MODES[2]);
                assert_eq!((query(), exchange(before)), (0, MODES[2]));
                before
            };
            assert_eq!(relaxed(), MODES[0]);
            assert_eq!(thread::spawn(relaxed).join().unwrap(), MODES[0]);
            assert!(end_capture(stream).is_ok());
        }
    });
    assert_eq!(outcome.trace.notes("capture_invalidated").count(), 3);
}

#[test]
fn calls_allowed_and_forbidden_during_capture() {
    child!().run(|| {
        start();
        let (kernels, plain, other) = (Kernels::load(), stream(), stream());
        let (start, stop) = (event(), event());
        record(start, other);
        record(stop, other);
        sync(other);
        begin_capture(plain, MODES[0]);
        assert_eq!(elapsed(start, stop), Ok(1_280));
        assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_ACTIVE));
        assert_eq!(status(other), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
        event();
        launch(kernels.empty, other, &mut []);
        record(start, other);
        assert!(end_capture(plain).is_ok());
        let mut address = 0;
        let mut host = ptr::null_mut();
        let mut module = ptr::null_mut();
        let text = std::ffi::CString::new(ptx(&[])).unwrap();
        // SAFETY: each pointer is valid for a result, and the text ends in NUL.
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
            begin_capture(plain, MODES[0]);
            fails(900, call());
            assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_INVALIDATED));
            fails(901, try_launch(kernels.empty, plain, &mut []));
            assert_eq!(end_capture(plain), Err(901));
            assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
        }
        // Waiting for the capturing stream itself is forbidden in every mode.
        begin_capture(plain, MODES[2]);
        // SAFETY: the simulated driver checks handles.
        fails(900, unsafe { sys::cuStreamSynchronize(plain) });
        assert_eq!(end_capture(plain), Err(901));
    });
}

#[test]
fn legacy_stream_use_invalidates_capture_on_blocking_stream() {
    child!().run(|| {
        start();
        let (kernels, legacy) = (Kernels::load(), ptr::null_mut());
        let (blocking, independent, event) = (stream_with(0), stream_with(1), event());
        begin_capture(independent, MODES[0]);
        launch(kernels.empty, legacy, &mut []);
        record(event, legacy);
        assert_eq!(status(legacy), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
        assert!(end_capture(independent).is_ok());

        begin_capture(blocking, MODES[0]);
        // Querying the status does not invalidate the capture.
        assert_eq!(status(legacy), Err(906));
        assert!(end_capture(blocking).is_ok());
        begin_capture(blocking, MODES[0]);
        fails(906, try_launch(kernels.empty, legacy, &mut []));
        assert_eq!(end_capture(blocking), Err(901));
        begin_capture(blocking, MODES[0]);
        // SAFETY: the simulated driver checks handles.
        fails(906, unsafe { sys::cuEventRecord(event, legacy) });
        assert_eq!(end_capture(blocking), Err(901));
        // SAFETY: as above.
        fails(900, unsafe { sys::cuStreamBeginCapture_v2(legacy, MODES[0]) });
    });
}

#[test]
fn graph_launch_runs_captured_nodes() {
    let outcome = child!().run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let (start, stop, plain) = (event(), event(), event());
        let (x, y) = (device_memory(64), device_memory(64));
        let (n, a) = (16_u32, 1.0_f32);
        begin_capture(stream, MODES[0]);
        // SAFETY: the memory has the given length, and the simulated driver checks handles.
        unsafe {
            ok(sys::cuMemsetD32Async(x, 1.0_f32.to_bits(), 16, stream));
            ok(sys::cuEventRecordWithFlags(start, stream, 1));
            kernels.spin(stream, 20_000);
            launch(kernels.saxpy, stream, &mut [arg(&n), arg(&a), arg(&x), arg(&y)]);
            ok(sys::cuEventRecordWithFlags(stop, stream, 1));
        }
        record(plain, stream);
        let graph = end_capture(stream).unwrap();
        // The plain record did not create a node, and the event has no time.
        assert_eq!((nodes(graph), elapsed(plain, plain)), (5, Err(1)));
        assert_eq!(query(plain), 907);
        assert_eq!(elapsed(start, stop), Err(400));
        let exec = instantiate(graph);
        // SAFETY: the simulated driver checks handles, and the memory has the given length.
        unsafe {
            ok(sys::cuGraphDestroy(graph));
            ok(sys::cuMemsetD8_v2(y, 0, 64));
            for launch in 1..=3 {
                ok(sys::cuGraphLaunch(exec, stream));
                sync(stream);
                let measured = elapsed(start, stop).unwrap();
                // Graph nodes have a gap of 120 ns; a saxpy of 64 bytes takes 1.4 us.
                let spin = formula::spin_ns(20_000) + 120;
                assert!((measured as i64 - (spin + 1_400 + 120 + 1_280) as i64).abs() < 96);
                let mut result = [0.0_f32; 16];
                ok(sys::cuMemcpyDtoH_v2(result.as_mut_ptr().cast(), y, 64));
                assert_eq!(result, [launch as f32; 16]);
            }
            ok(sys::cuGraphExecDestroy(exec));
        }
        // A record outside a capture gives the event a time again.
        record(plain, stream);
        sync(stream);
        assert_eq!(elapsed(plain, plain), Ok(0));
    });
    assert_eq!(outcome.trace.kernels("spin_ns").filter(|kernel| kernel.graph).count(), 3);
    for sample in outcome.trace.elapsed() {
        assert_eq!(sample.reported_ns, sample.expected_ns());
    }
}

#[test]
fn capture_forks_by_event_and_must_join() {
    child!().run(|| {
        start();
        let (kernels, main, side) = (Kernels::load(), stream(), stream());
        let (fork, join) = (event(), event());
        // SAFETY: the simulated driver checks handles.
        let wait = |stream, event| ok(unsafe { sys::cuStreamWaitEvent(stream, event, 0) });
        for joined in [true, false] {
            begin_capture(main, MODES[1]);
            record(fork, main);
            wait(side, fork);
            assert_eq!(status(side), Ok(Status::CU_STREAM_CAPTURE_STATUS_ACTIVE));
            launch(kernels.empty, side, &mut []);
            record(join, side);
            if joined {
                wait(main, join);
                launch(kernels.empty, main, &mut []);
                assert_eq!(nodes(end_capture(main).unwrap()), 2);
            } else {
                assert_eq!(end_capture(main), Err(904));
            }
            assert_eq!(status(side), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
        }
        // A capture cannot depend on work outside it.
        record(fork, side);
        begin_capture(main, MODES[1]);
        // SAFETY: the simulated driver checks handles.
        fails(905, unsafe { sys::cuStreamWaitEvent(main, fork, 0) });
        assert_eq!(end_capture(main), Err(901));
    });
}

#[test]
fn destroying_the_origin_stream_ends_its_capture() {
    let outcome = child!().run(|| {
        start();
        let (plain, event) = (stream(), event());
        for mode in MODES {
            let captured = stream();
            begin_capture(captured, mode);
            // SAFETY: the simulated driver checks handles.
            unsafe {
                ok(sys::cuStreamDestroy_v2(captured));
                fails(400, sys::cuStreamEndCapture(captured, &mut ptr::null_mut()));
                // Nothing is forbidden any more.
                ok(sys::cuCtxSynchronize());
                ok(sys::cuEventRecord(event, plain));
                ok(sys::cuStreamSynchronize(plain));
            }
            assert_eq!(status(plain), Ok(Status::CU_STREAM_CAPTURE_STATUS_NONE));
        }
    });
    assert_eq!(outcome.trace.notes("capture_invalidated").count(), 3);
}

#[test]
fn capture_ends_on_its_origin_stream_and_thread() {
    child!().run(|| {
        start();
        let stream = stream();
        let handle = stream as u64;
        assert_eq!(end_capture(stream), Err(401));
        begin_capture(stream, MODES[1]);
        // SAFETY: the simulated driver checks handles.
        fails(401, unsafe { sys::cuStreamBeginCapture_v2(stream, MODES[1]) });
        let elsewhere = move || end_capture(handle as CUstream).map(drop);
        assert_eq!(thread::spawn(elsewhere).join().unwrap(), Err(908));
        assert!(end_capture(stream).is_ok());
        begin_capture(stream, MODES[2]);
        assert_eq!(thread::spawn(elsewhere).join().unwrap(), Ok(()));
    });
}
