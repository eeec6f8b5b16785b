//! Launches that are captured into graphs, whose replays are timed.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use cudarc::driver::{CudaGraph, CudaStream, DriverError, sys};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::raw_graph::{Exec, begin, capture, end, mode, nodes};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("graph/replay", replay),
    ("graph/watched", watched),
    ("graph/raced", raced),
    ("graph/destroyed", destroyed),
    ("graph/in_flight", in_flight),
    ("graph/update", update),
    ("graph/many", many),
    ("graph/off_first", off_first),
    ("graph/off_asks", off_asks),
    ("graph/warmup", warmup),
    ("graph/streams", streams),
    ("graph/across", across),
    ("graph/nested", nested),
    ("graph/failing", failing),
    ("graph/reset", reset),
    ("graph/for_device", for_device),
];

type Done = Result<(), DriverError>;

/// What each node runs for.
const SPIN_NS: u64 = 20_000;

#[gpu_timed(graph, cold, sleep)]
fn node(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, SPIN_NS)
}

#[gpu_timed]
fn without(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Looks after each of so many replays: first through cudarc, then through a graph of our own.
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
        // A second look finds nothing new.
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

/// Nobody asks for a report: what is timed in the stream has the nodes looked at.
fn watched(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::watched");
    let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
    for _ in 0..320 {
        replayed(stream, &graph);
        gpu.synchronize();
    }
    tally::print();
}

/// Reports are made while the graph is replayed again and again.
fn raced(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::raced");
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

/// Graphs come and go before anybody looks.
fn destroyed(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::destroyed");
    for _ in 0..50 {
        let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
        graph.launch(stream);
        gpu.synchronize();
    }
    // One that is never launched, and one whose capture is given up.
    drop(Exec::new(capture(stream, || node(stream, &spin).unwrap())));
    begin(stream, mode("global"));
    node(stream, &spin).unwrap();
    // SAFETY: no call is allowed here that waits for the stream, which is what ruins the capture.
    assert!(unsafe { sys::cuStreamSynchronize(stream.cu_stream()) }.result().is_err());
    let mut graph = ptr::null_mut();
    // SAFETY: writes one handle.
    let ended = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &raw mut graph) };
    assert!(ended.result().is_err());
    tally::print();
}

/// A graph is destroyed while its replay goes on, and its events are wanted for the next.
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

/// More launches than there are pairs of events for: some have nodes that nobody reads.
fn many(_: &[String]) {
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
    assert!(exec.update(second), "it has another shape");
    tally::print();
}

/// Captured anew, a graph keeps its shape, whatever is switched in between.
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
    // What is not captured is not timed while that is off.
    node(stream, &spin).unwrap();
    gpu_time::set_enabled(true);
    tally::print();
}

static ASKED: AtomicU64 = AtomicU64::new(0);

fn asked(stream: &Arc<CudaStream>) -> &Arc<CudaStream> {
    ASKED.fetch_add(1, Relaxed);
    stream
}

#[gpu_timed(graph, stream = asked(stream))]
fn asking(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Whose stream is asked for while timing is off: of every call until a capture has decided that there are
/// no nodes.
fn off_asks(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("graph::asking");
    gpu_time::set_enabled(false);
    asking(&gpu.stream, &spin).unwrap();
    capture(&gpu.stream, || asking(&gpu.stream, &spin).unwrap());
    tally::fact("undecided", ASKED.swap(0, Relaxed));
    asking(&gpu.stream, &spin).unwrap();
    capture(&gpu.stream, || asking(&gpu.stream, &spin).unwrap());
    tally::fact("decided", ASKED.swap(0, Relaxed));
    gpu_time::set_enabled(true);
    capture(&gpu.stream, || asking(&gpu.stream, &spin).unwrap());
    tally::fact("on", ASKED.swap(0, Relaxed));
    gpu.synchronize();
    tally::print();
}

/// The first capture decides that there are no nodes.
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
fn warmed(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, SPIN_NS)
}

/// Captures before, amid and after the calls that warm up.
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

/// One graph on two streams in turn.
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

/// Captures that begin or end amid a call.
fn across(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::across");
    let work = || spin.launch(stream, SPIN_NS).unwrap();
    let begin = || begin(stream, mode("global"));
    // The second launch is captured, and the first is not.
    partly(stream, work, begin, work);
    let graph = end(stream);
    assert_eq!(nodes(graph), 3);
    // The other way round.
    begin();
    let mut other = None;
    partly(stream, work, || other = Some(end(stream)), work);
    assert_eq!(other.map(nodes), Some(3));
    // A capture that ends inside a launch has its start alone.
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
fn within(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    outer(stream, spin, inner(stream, spin))
}

fn inner(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    spin.launch(stream, SPIN_NS)
}

fn outer(stream: &Arc<CudaStream>, spin: &Spin, before: Done) -> Done {
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
fn often(stream: &Arc<CudaStream>, spin: &Spin, fails: bool) -> Done {
    ran!();
    if fails { spin.launch_badly(stream) } else { spin.launch(stream, SPIN_NS) }
}

/// Some launches fail, and so may calls of the runtime's.
fn failing(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("graph::failing");
    let mut ran = 0;
    for round in 0..6 {
        let graph = capture(stream, || {
            for call in 0..4 {
                let fails = call == 2 && round % 2 == 0;
                assert_eq!(often(stream, &spin, fails).is_err(), fails);
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

/// The context goes, and with it the events.
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
    // SAFETY: nothing is used of the context any more.
    unsafe { sys::cuDevicePrimaryCtxReset_v2(0) }.result().unwrap();
    std::mem::forget((spin, gpu));
    tally::print();
}

/// What is captured with nodes and without is to be launched from the device.
fn for_device(_: &[String]) {
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
    // The capture was sound, and the program goes on.
    let graph = Exec::new(capture(stream, || node(stream, &spin).unwrap()));
    graph.launch(stream);
    gpu.synchronize();
    gpu_time::snapshot();
    tally::print();
}
