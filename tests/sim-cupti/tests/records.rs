//! Tests for the stand-in without faults: records match the driver's trace, and callbacks surround
//! the calls that enqueue work.
#![allow(unsafe_code)] // calls C interfaces

mod client;
#[path = "../../sim-driver/tests/support/mod.rs"]
mod support;

use std::ffi::c_void;
use std::ptr;
use std::thread;

use client::*;
use cudarc::driver::sys::{self, CUfunction, CUgraphExec, CUstream, CUstreamCaptureMode};
use gpu_time_sim_cupti::{EPOCH_NS, SimCupti, Version};
use support::*;

const ALL: &[u32] = &[KERNELS, MEMCPY, MEMSET];
const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;

/// Launches with `cuLaunchKernelEx`.
fn launch_ex(function: CUfunction, stream: CUstream, grid: u32, shared: u32) {
    let config = sys::CUlaunchConfig {
        gridDimX: grid,
        gridDimY: 2,
        gridDimZ: 1,
        blockDimX: 64,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        hStream: stream,
        attrs: ptr::null_mut(),
        numAttrs: 0,
    };
    // SAFETY: the kernel has no parameters.
    ok(unsafe { sys::cuLaunchKernelEx(&config, function, ptr::null_mut(), ptr::null_mut()) });
}

/// Captures `work` on the stream and instantiates the graph.
fn captured(stream: CUstream, work: impl FnOnce()) -> CUgraphExec {
    begin_capture(stream, MODE);
    work();
    instantiate(end_capture(stream).unwrap())
}

fn replay(graph: CUgraphExec, stream: CUstream) {
    // SAFETY: the simulated driver checks handles.
    ok(unsafe { sys::cuGraphLaunch(graph, stream) });
}

#[test]
fn records_equal_trace() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, one, other) = (Kernels::load(), stream(), stream());
        let (a, b) = (device_memory(4096), device_memory(4096));
        let client = Client::subscribed();
        client.enable(ALL);
        kernels.spin(one, 20_000);
        kernels.spin(other, 5_000);
        launch_ex(kernels.empty, one, 7, 1_024);
        let mut host = [1u8; 4096];
        // SAFETY: the ranges are as long as the copies.
        unsafe {
            ok(sys::cuMemcpyHtoDAsync_v2(a, host.as_ptr().cast(), 4096, one));
            ok(sys::cuMemcpyDtoDAsync_v2(b, a, 2048, other));
            ok(sys::cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), a, 1024, one));
            ok(sys::cuMemsetD32Async(a, 0xABCD, 16, other));
        }
        let graph = captured(one, || {
            kernels.spin(one, 1_000);
            kernels.spin(one, 2_000);
            // SAFETY: the range is as long as the memset.
            ok(unsafe { sys::cuMemsetD8Async(b, 7, 100, one) });
        });
        replay(graph, one);
        replay(graph, other);
        // SAFETY: the call has no preconditions.
        ok(unsafe { sys::cuCtxSynchronize() });
        client.flush();
        let records = take_records();
        let sized = |kind, copy_kind| {
            let found = records.iter().find(|r| (r.kind, r.copy_kind) == (kind, copy_kind));
            found.unwrap().bytes
        };
        assert_eq!([1, 8, 2].map(|direction| sized(MEMCPY, direction)), [4096, 2048, 1024]);
        assert_eq!(sized(MEMSET, 0), 64);
        let large = records.iter().find(|record| record.shared_bytes > 0).unwrap();
        assert_eq!((large.grid, large.block, large.shared_bytes), ([7, 2, 1], [64, 1, 1], 1_024));
        // Both replays have the same nodes, but different correlation ids.
        let nodes: Vec<_> = records.iter().filter(|record| record.graph_node != 0).collect();
        assert_eq!(nodes.len(), 6);
        let of = |correlation| nodes.iter().filter(move |node| node.correlation == correlation);
        let ids = |correlation| of(correlation).map(|node| node.graph_node).collect::<Vec<_>>();
        let (first, last) = (nodes[0].correlation, nodes[5].correlation);
        assert_eq!((ids(first).len(), ids(first)), (3, ids(last)));
        assert_eq!(records.len(), 13);
        assert_match(records, &trace());
        assert_eq!(client.dropped(), 0);
    });
}

#[test]
fn only_work_enqueued_while_on_is_recorded() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        let graph = captured(stream, || kernels.spin(stream, 3_000));
        kernels.busy(stream);
        client.enable(&[KERNELS]);
        // These run long after the kind has been switched off.
        kernels.spin(stream, 1_000);
        replay(graph, stream);
        let memory = device_memory(64);
        // SAFETY: the range is as long as the memset.
        ok(unsafe { sys::cuMemsetD8Async(memory, 1, 64, stream) });
        client.disable(&[KERNELS]);
        kernels.spin(stream, 2_000);
        replay(graph, stream);
        sync(stream);
        client.flush();
        let records = take_records();
        let lengths: Vec<u64> = records.iter().map(|record| record.end - record.start).collect();
        assert_eq!(lengths, [1_024 + 672, 3_008 + 672]);
        assert_match(records, &trace());
    });
}

#[test]
fn callbacks_surround_launches() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        let context = start();
        let (kernels, stream) = (Kernels::load(), stream());
        let mut client = Client::load();
        assert_eq!(client.subscribe(), 0);
        assert_eq!(client.register(), 0);
        kernels.spin(stream, 1_000);
        client.callbacks(true, &[LAUNCH, LAUNCH_EX, GRAPH_LAUNCH]);
        client.enable(&[KERNELS]);
        kernels.spin(stream, 1_000);
        launch_ex(kernels.empty, stream, 1, 0);
        // A captured launch has callbacks, but enqueues no work.
        let graph = captured(stream, || kernels.spin(stream, 3_000));
        replay(graph, stream);
        assert_ne!(try_launch(kernels.empty, ptr::without_provenance_mut(77), &mut []) as i32, 0);
        client.callbacks(false, &[LAUNCH]);
        kernels.spin(stream, 1_000);
        sync(stream);
        client.flush();
        let calls = take_calls();
        let names: Vec<(&str, bool, u32)> =
            calls.iter().map(|call| (&*call.name, call.is_exit, call.id)).collect();
        let [launch, ex, replayed] =
            [("cuLaunchKernel", LAUNCH), ("cuLaunchKernelEx", LAUNCH_EX), ("cuGraphLaunch", 514)];
        let expected: Vec<_> = [launch, ex, launch, replayed, launch]
            .iter()
            .flat_map(|&(name, id)| [(name, false, id), (name, true, id)])
            .collect();
        assert_eq!(names, expected);
        for pair in calls.chunks(2) {
            assert_eq!(pair[0].correlation, pair[1].correlation);
            assert_eq!(pair[1].kept, u64::from(pair[0].correlation));
            assert!(pair.iter().all(|call| call.context == context as u64));
            assert!(pair.iter().all(|call| call.context_id == 1));
        }
        let results: Vec<_> = calls.iter().filter_map(|call| call.result).collect();
        assert_eq!(results[..4], [0; 4]);
        assert_eq!(results[4], 400);
        assert_eq!(calls[0].arguments[0], kernels.spin_ns as u64);
        assert_eq!(calls[2].arguments[1], kernels.empty as u64);
        assert_eq!(calls[6].arguments, [graph as u64, stream as u64]);
        // Each launch has the same correlation id as its record. The last launch has no callbacks.
        let records = take_records();
        let ids: Vec<u32> = records.iter().map(|record| record.correlation).collect();
        assert_eq!(ids[..3], [0, 2, 6].map(|call: usize| calls[call].correlation));
        assert_eq!(ids.len(), 4);
        assert!(calls.iter().all(|call| call.correlation != ids[3]));
    });
}

#[test]
fn kind_switched_on_at_entry_records_the_call() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        client.callbacks(true, &[LAUNCH]);
        kernels.spin(stream, 1_000);
        enable_at_entry(KERNELS);
        kernels.spin(stream, 2_000);
        sync(stream);
        client.flush();
        let lengths: Vec<u64> = take_records().iter().map(|r| r.end - r.start).collect();
        assert_eq!(lengths, [2_016 + 672]);
    });
}

#[test]
fn copies_between_devices_have_their_own_kind() {
    child!().sim(|sim| scripted(sim, "").devices(2)).run(|| {
        let mut contexts = [ptr::null_mut(); 2];
        let mut memory = [0; 2];
        // SAFETY: each pointer is valid for one result.
        unsafe {
            ok(sys::cuInit(0));
            for (device, context) in contexts.iter_mut().enumerate() {
                ok(sys::cuDevicePrimaryCtxRetain(context, device as i32));
                ok(sys::cuCtxSetCurrent(*context));
                memory[device] = device_memory(64);
            }
        }
        let (stream, client) = (stream(), Client::subscribed());
        let copy = || {
            let ([from, to], [source, target]) = (memory, contexts);
            // SAFETY: the ranges are as long as the copy.
            ok(unsafe { sys::cuMemcpyPeerAsync(to, target, from, source, 64, stream) });
        };
        client.enable(&[MEMCPY]);
        copy();
        client.enable(&[PEER_COPY]);
        copy();
        sync(stream);
        client.flush();
        let records = take_records();
        assert_eq!((records.len(), records[0].device, records[0].bytes), (1, 1, 64));
        assert_match(records, &trace());
    });
}

#[test]
fn callbacks_are_on_the_launching_thread() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        let context = start() as u64;
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        client.callbacks(true, &[LAUNCH]);
        client.enable(&[KERNELS]);
        let (function, stream) = (kernels.empty as u64, stream as u64);
        let work = move || {
            // SAFETY: the simulated driver checks handles.
            ok(unsafe { sys::cuCtxSetCurrent(context as sys::CUcontext) });
            (0..50).for_each(|_| launch(function as CUfunction, stream as CUstream, &mut []));
        };
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sync(stream as CUstream);
        client.flush();
        let calls = take_calls();
        let mut exits: Vec<u32> =
            calls.iter().filter(|call| call.is_exit).map(|call| call.correlation).collect();
        let mut records: Vec<u32> = take_records().iter().map(|r| r.correlation).collect();
        exits.sort_unstable();
        records.sort_unstable();
        assert_eq!((exits.len(), exits), (200, records));
        // The value that the client keeps from the entry to the exit is per thread.
        let kept = calls.iter().filter(|call| call.is_exit);
        assert!(kept.clone().all(|call| call.kept == u64::from(call.correlation)));
    });
}

#[test]
fn timestamps_are_virtual_host_time() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let client = Client::subscribed();
        let before = client.timestamp().unwrap();
        assert_eq!(before, EPOCH_NS + now());
        advance(1_000_000);
        assert_eq!(client.timestamp().unwrap(), before + 1_000_000);
    });
}

#[test]
fn flush_keeps_buffers_with_incomplete_records() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        client.enable(&[KERNELS]);
        kernels.spin(stream, 1_000);
        sync(stream);
        kernels.busy(stream);
        client.flush();
        assert!(take_buffers().is_empty());
        sync(stream);
        client.flush();
        assert_eq!(take_records().len(), 2);
        kernels.spin(stream, 1_000);
        sync(stream);
        kernels.busy(stream);
        assert_eq!(client.call("cuptiActivityFlushAll", FORCED), 0);
        let [ended, running] = &take_records()[..] else { panic!() };
        assert!(ended.start > EPOCH_NS && ended.end > ended.start);
        assert_eq!((running.start, running.end), (0, 0));
        // The incomplete record is not delivered again.
        sync(stream);
        client.flush();
        assert!(take_buffers().is_empty());
    });
}

#[test]
fn full_buffer_comes_back_by_itself() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        // Three records of 216 bytes.
        set_buffer_bytes(700);
        client.enable(&[KERNELS]);
        for _ in 0..7 {
            kernels.spin(stream, 1_000);
            sync(stream);
        }
        assert_eq!(take_buffers().iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        client.flush();
        assert_eq!((take_records().len(), requests(), client.dropped()), (1, 3, 0));
        decline();
        set_buffer_bytes(100);
        (0..4).for_each(|_| kernels.spin(stream, 1_000));
        assert_eq!((client.dropped(), client.dropped()), (4, 0));
    });
}

#[test]
fn destroyed_context_leaves_records_without_times() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let mut own = ptr::null_mut();
        // SAFETY: the pointer is valid for a result.
        ok(unsafe { sys::cuCtxCreate_v4(&mut own, ptr::null_mut(), 0, 0) });
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        client.enable(&[KERNELS]);
        kernels.hold(stream, words(), 1, u64::MAX);
        kernels.spin(stream, 1_000);
        // SAFETY: the simulated driver checks handles.
        ok(unsafe { sys::cuCtxDestroy_v2(own) });
        client.flush();
        let times: Vec<_> =
            take_records().iter().map(|record| (record.start, record.end)).collect();
        assert_eq!(times, [(0, 0); 2]);
    });
}

#[test]
fn stream_ids_are_those_of_records() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        let context = start();
        let (kernels, own) = (Kernels::load(), stream());
        let client = Client::subscribed();
        client.enable(&[KERNELS]);
        kernels.spin(own, 1_000);
        kernels.spin(ptr::null_mut(), 1_000);
        sync(own);
        sync(ptr::null_mut());
        client.flush();
        let of = |stream: CUstream| client.stream_id(context.cast(), stream.cast::<c_void>());
        let streams: Vec<u32> = take_records().iter().map(|record| record.stream).collect();
        assert_eq!(streams, [of(own), of(ptr::null_mut())]);
        assert_eq!(of(ptr::null_mut()), 7);
    });
}

#[test]
fn recording_costs_host_time() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let client = Client::subscribed();
        let cost = |work: &dyn Fn()| {
            let before = now();
            work();
            now() - before
        };
        let launch = || kernels.spin(stream, 1_000);
        let off = cost(&launch);
        assert_eq!(cost(&|| client.enable(&[KERNELS])), 1_700);
        assert_eq!(cost(&launch), off + 450);
        assert_eq!(cost(&|| client.disable(&[KERNELS])), 1_000);
        assert_eq!(cost(&launch), off);
        assert_eq!(cost(&|| client.flush()), 0);
    });
}

#[test]
fn second_versions_of_functions() {
    let sim = |sim| with(sim, SimCupti::new(Version::V13_5).script("drop=3"));
    child!().sim(sim).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let mut client = Client::load();
        // Without a subscriber, these calls fail.
        assert_eq!([client.register_second(), client.next_record_second()], [1; 2]);
        assert_eq!(client.call_second("cuptiActivityEnable_v2", KERNELS), 1);
        assert_eq!(client.subscribe_with(true), (0, String::new()));
        assert_eq!(client.register_second(), 0);
        assert_eq!(client.call_second("cuptiActivityEnable_v2", KERNELS), 0);
        (1..=3).for_each(|us| kernels.spin(stream, us * 1_000));
        assert_eq!(client.call_second("cuptiActivityDisable_v2", KERNELS), 0);
        kernels.spin(stream, 4_000);
        sync(stream);
        client.flush();
        assert_eq!((take_records().len(), client.dropped_second()), (2, 1));
        assert_eq!(client.next_record_second(), 12);
    });
}

/// Checks that a version has this number and these functions, and that its records can be read.
#[track_caller]
fn check_version(
    test: &'static str,
    version: Version,
    configure: fn(gpu_time_sim_driver::SimDriver) -> gpu_time_sim_driver::SimDriver,
    number: u32,
    functions: [bool; 3],
) {
    Child::new(test).sim(configure).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let mut client = Client::load_version(version);
        assert_eq!((client.subscribe(), client.register()), (0, 0));
        assert_eq!((client.version(), version.number()), (number, number));
        let names =
            ["cuptiSubscribe_v2", "cuptiActivityEnable_v2", "cuptiActivityGetNextRecord_v2"];
        assert_eq!(names.map(|name| client.has(name)), functions);
        client.enable(ALL);
        let memory = device_memory(64);
        for _ in 0..3 {
            kernels.spin(stream, 1_000);
            // SAFETY: the ranges are as long as the commands.
            unsafe {
                ok(sys::cuMemsetD8Async(memory, 1, 64, stream));
                ok(sys::cuMemcpyDtoDAsync_v2(memory, memory, 64, stream));
            }
        }
        sync(stream);
        client.flush();
        assert_match(take_records(), &trace());
    });
}

#[test]
fn version_11_8() {
    let sim = |sim| with(sim, SimCupti::new(Version::V11_8));
    check_version(this_test!(), Version::V11_8, sim, 18, [false; 3]);
}

#[test]
fn version_12_4() {
    let sim = |sim| with(sim, SimCupti::new(Version::V12_4));
    check_version(this_test!(), Version::V12_4, sim, 22, [false; 3]);
}

#[test]
fn version_13_0() {
    let sim = |sim| with(sim, SimCupti::new(Version::V13_0));
    check_version(this_test!(), Version::V13_0, sim, 130_001, [true, false, false]);
}

#[test]
fn version_13_2() {
    let sim = |sim| with(sim, SimCupti::new(Version::V13_2));
    check_version(this_test!(), Version::V13_2, sim, 130_202, [true, true, false]);
}

#[test]
fn version_13_5() {
    let sim = |sim| with(sim, SimCupti::new(Version::V13_5));
    check_version(this_test!(), Version::V13_5, sim, 130_500, [true; 3]);
}
