//! Launches captured into graphs, whose replays are timed.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use cudarc::driver::{CudaGraph, CudaStream, sys};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin, reset_primary_context};
use crate::raw_graph::{Exec, begin, capture, end, mode, nodes};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("graph/replay", replay),
    ("graph/polled", polled),
    ("graph/concurrent_reports", concurrent_reports),
    ("graph/destroyed", destroyed),
    ("graph/in_flight", in_flight),
    ("graph/update", update),
    ("graph/many_nodes", many_nodes),
    ("graph/off_first", off_first),
    ("graph/off_queries_stream", off_queries_stream),
    ("graph/warmup", warmup),
    ("graph/streams", streams),
    ("graph/mid_call", mid_call),
    ("graph/nested", nested),
    ("graph/failing", failing),
    ("graph/reset", reset),
    ("graph/device_launch", device_launch),
];

/// The duration of each node's kernel.
const SPIN_NS: u64 = 20_000;

#[gpu_timed(graph, cold, sleep)]
fn node(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, SPIN_NS)
}

#[gpu_timed]
fn without(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Replays a graph the given number of times, first through cudarc, then as a raw graph, and takes a
/// snapshot after each replay.
fn replay(arguments: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let (spin, plain) = (gpu.spin("graph::node"), gpu.spin("graph::without"));
    let work = || {
        node(stream, &spin).unwrap();
        without(stream, &plain).unwrap();
    };
    if arguments[1] == "used" {
        work();
        gpu.synchronize();
    }
    let mode = mode(&arguments[0]);
    stream.begin_capture(mode).unwrap();
    work();
    let flags = sys::CUgraphInstantiate_flags(0);
    let graph: CudaGraph = stream.end_capture(flags).expect("it is intact").expect("a graph");
    tally::fact("nodes", nodes(graph.cu_graph()));
    begin(stream, mode);
    without(stream, &plain).unwrap();
    node(stream, &spin).unwrap();
    let raw = end(stream);
    tally::fact("raw_nodes", nodes(raw));
    let raw = Exec::new(raw);
    let replays: u32 = arguments[2].parse().unwrap();
    for _ in 0..replays {
        graph.launch().unwrap();
        gpu.synchronize();
        assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
    }
    for _ in 0..10 {
        raw.launch(stream);
        gpu.synchronize();
        // The second snapshot finds nothing new.
        gpu_time::snapshot();
        gpu_time::snapshot();
    }
    work();
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(scope = "body")]
fn replayed(stream: &Arc<CudaStream>, graph: &Exec) {
    ran!();
    graph.launch(stream);
}

/// Requests no report. Timed calls on the stream are enough for the runtime to read the nodes.
fn polled(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::polled");
    let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
    for _ in 0..320 {
        replayed(stream, &graph);
        gpu.synchronize();
    }
    tally::print();
}

/// Takes snapshots while the graph is replayed repeatedly.
fn concurrent_reports(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::concurrent_reports");
    let graph = capture(stream, || (0..5).for_each(|_| node(stream, &spin).unwrap()));
    let graph = Exec::new(graph);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
            }
        });
        for replay in 0..2_000 {
            graph.launch(stream);
            if replay % 4 == 0 {
                stream.synchronize().unwrap();
            }
        }
        stream.synchronize().unwrap();
        is_over.store(true, Relaxed);
    });
    tally::print();
}

/// Destroys graphs before their nodes are read.
fn destroyed(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::destroyed");
    for _ in 0..50 {
        let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
        graph.launch(stream);
        gpu.synchronize();
    }
    // One graph is never launched, and the capture of another is abandoned.
    drop(Exec::new(capture(stream, || node(stream, &spin).unwrap())));
    begin(stream, mode("global"));
    node(stream, &spin).unwrap();
    // SAFETY: the stream is alive. Waiting for it is not allowed here and invalidates the capture.
    assert!(unsafe { sys::cuStreamSynchronize(stream.cu_stream()) }.result().is_err());
    let mut graph = ptr::null_mut();
    // SAFETY: writes one handle.
    let ended = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &raw mut graph) };
    assert!(ended.result().is_err());
    tally::print();
}

/// Destroys a graph while its replay is running. The next graph reuses its events.
fn in_flight(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::in_flight");
    for _ in 0..20 {
        let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
        graph.launch(stream);
        graph.launch(stream);
    }
    gpu.synchronize();
    tally::print();
}

/// Captures more launches than there are event pairs, so some nodes are never read.
fn many_nodes(_: &[String]) {
    const LAUNCHES: usize = 4_200;
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::node");
    let captured = || capture(stream, || (0..LAUNCHES).for_each(|_| node(stream, &spin).unwrap()));
    let first = captured();
    assert_eq!(nodes(first), 3 * LAUNCHES);
    let exec = Exec::new(first);
    let second = captured();
    assert_eq!(nodes(second), 3 * LAUNCHES);
    assert!(exec.update(second), "the graph's shape has changed");
    tally::print();
}

/// Checks that a graph captured again keeps its shape, whichever settings change in between.
fn update(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let (spin, plain) = (gpu.spin("graph::node"), gpu.spin("graph::without"));
    let captured = || {
        capture(stream, || {
            node(stream, &spin).unwrap();
            without(stream, &plain).unwrap();
        })
    };
    let exec = Exec::new(captured());
    for round in 0..10 {
        gpu_time::set_enabled(round % 2 == 0);
        let graph = captured();
        assert_eq!(nodes(graph), 4);
        assert!(exec.update(graph), "round {round}");
        exec.launch(stream);
        gpu.synchronize();
        gpu_time::snapshot();
    }
    // Calls outside a capture are not timed while timing is off.
    node(stream, &spin).unwrap();
    gpu_time::set_enabled(true);
    tally::print();
}

static STREAM_QUERIES: AtomicU64 = AtomicU64::new(0);

fn queried(stream: &Arc<CudaStream>) -> &Arc<CudaStream> {
    STREAM_QUERIES.fetch_add(1, Relaxed);
    stream
}

#[gpu_timed(graph, stream = queried(stream))]
fn querying(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Counts the evaluations of the stream expression. While timing is off, every call evaluates it
/// until a capture has decided that there are no nodes.
fn off_queries_stream(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("graph::querying");
    gpu_time::set_enabled(false);
    querying(&gpu.stream, &spin).unwrap();
    capture(&gpu.stream, || querying(&gpu.stream, &spin).unwrap());
    tally::fact("undecided", STREAM_QUERIES.swap(0, Relaxed));
    querying(&gpu.stream, &spin).unwrap();
    capture(&gpu.stream, || querying(&gpu.stream, &spin).unwrap());
    tally::fact("decided", STREAM_QUERIES.swap(0, Relaxed));
    gpu_time::set_enabled(true);
    capture(&gpu.stream, || querying(&gpu.stream, &spin).unwrap());
    tally::fact("on", STREAM_QUERIES.swap(0, Relaxed));
    gpu.synchronize();
    tally::print();
}

/// Makes the first capture while timing is off, which decides that the graph has no nodes.
fn off_first(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::node");
    let captured = || capture(stream, || node(stream, &spin).unwrap());
    gpu_time::set_enabled(false);
    let exec = Exec::new(captured());
    gpu_time::set_enabled(true);
    for _ in 0..3 {
        let graph = captured();
        assert_eq!(nodes(graph), 1);
        assert!(exec.update(graph));
        exec.launch(stream);
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(graph, warmup = 300)]
fn warmed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Captures before, during and after the warm-up calls.
fn warmup(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::warmed");
    for _ in 0..4 {
        let graph = capture(stream, || warmed(stream, &spin).unwrap());
        assert_eq!(nodes(graph), 3);
        let exec = Exec::new(graph);
        exec.launch(stream);
        gpu.synchronize();
        gpu_time::snapshot();
        (0..101).for_each(|_| warmed(stream, &spin).unwrap());
        gpu.synchronize();
    }
    tally::print();
}

/// Launches one graph on two streams in turn.
fn streams(_: &[String]) {
    let gpu = Gpu::new();
    let (stream, other) = (&gpu.stream, gpu.new_stream());
    let spin = gpu.spin("graph::node");
    let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
    for _ in 0..50 {
        for stream in [stream, &other] {
            graph.launch(stream);
            gpu.synchronize();
            gpu_time::snapshot();
        }
    }
    tally::print();
}

#[gpu_timed(graph, launch = "part")]
fn partly(
    stream: &Arc<CudaStream>,
    first: impl FnOnce(),
    between: impl FnOnce(),
    second: impl FnOnce(),
) {
    ran!();
    part(first);
    between();
    part(second);
    let _ = stream;
}

fn part(work: impl FnOnce()) {
    work();
}

/// Makes captures that begin or end in the middle of a call.
fn mid_call(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::mid_call");
    let work = || spin.launch(stream, SPIN_NS).unwrap();
    let begin = || begin(stream, mode("global"));
    // The second launch is captured, but not the first.
    partly(stream, work, begin, work);
    let graph = end(stream);
    assert_eq!(nodes(graph), 3);
    // The first launch is captured, but not the second.
    begin();
    let mut other = None;
    partly(stream, work, || other = Some(end(stream)), work);
    assert_eq!(other.map(nodes), Some(3));
    // A capture that ends inside a launch contains only the start event of that launch.
    begin();
    let mut third = None;
    partly(stream, || third = Some(end(stream)), || (), work);
    assert_eq!(third.map(nodes), Some(1));
    for graph in [Some(graph), other, third].into_iter().flatten() {
        let exec = Exec::new(graph);
        exec.launch(stream);
        gpu.synchronize();
        gpu_time::snapshot();
    }
    tally::print();
}

#[gpu_timed(graph, launch = ["outer", "inner"])]
fn within(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    outer(stream, spin, inner(stream, spin))
}

fn inner(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    spin.launch(stream, SPIN_NS)
}

fn outer(stream: &Arc<CudaStream>, spin: &Spin, before: LaunchResult) -> LaunchResult {
    before.and_then(|()| spin.launch(stream, SPIN_NS))
}

fn nested(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::nested");
    let graph = capture(stream, || within(stream, &spin).unwrap());
    tally::fact("nodes", nodes(graph));
    let graph = Exec::new(graph);
    for _ in 0..10 {
        graph.launch(stream);
        gpu.synchronize();
        gpu_time::snapshot();
    }
    tally::print();
}

#[gpu_timed(graph, launch = "launch_badly")]
fn may_fail(stream: &Arc<CudaStream>, spin: &Spin, fails: bool) -> LaunchResult {
    ran!();
    if fails { spin.launch_badly(stream) } else { spin.launch(stream, SPIN_NS) }
}

/// Captures launches of which some fail. The runtime's driver calls may fail too.
fn failing(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::failing");
    let mut ran = 0;
    for round in 0..6 {
        let graph = capture(stream, || {
            for call in 0..4 {
                let fails = call == 2 && round % 2 == 0;
                assert_eq!(may_fail(stream, &spin, fails).is_err(), fails);
                ran += u64::from(!fails);
            }
        });
        let graph = Exec::new(graph);
        graph.launch(stream);
        gpu.synchronize();
        gpu_time::snapshot();
    }
    tally::fact("kernels", ran);
    tally::print();
}

/// Destroys the context together with the events.
fn reset(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::reset");
    let graph = capture(stream, || node(stream, &spin).unwrap());
    let graph = Exec::new(graph);
    graph.launch(stream);
    gpu.synchronize();
    gpu_time::snapshot();
    graph.launch(stream);
    gpu.synchronize();
    std::mem::forget(graph);
    reset_primary_context();
    std::mem::forget((spin, gpu));
    tally::print();
}

/// Instantiates graphs, captured with and without nodes, for device-side launches.
fn device_launch(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let (spin, plain) = (gpu.spin("graph::node"), gpu.spin("graph::without"));
    let graphs = [
        ("node", capture(stream, || node(stream, &spin).unwrap())),
        ("without", capture(stream, || without(stream, &plain).unwrap())),
    ];
    for (name, graph) in graphs {
        let answer = match Exec::for_device(graph) {
            Ok(_) => 0,
            Err(error) => error.0 as u64,
        };
        tally::fact(name, answer);
    }
    // The capture was valid, and the program continues.
    let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
    graph.launch(stream);
    gpu.synchronize();
    gpu_time::snapshot();
    tally::print();
}
