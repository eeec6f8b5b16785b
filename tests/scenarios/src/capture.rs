//! Stream captures, which timing must not disturb.

use std::ptr;
use std::sync::{Arc, Barrier};
use std::thread;

use cudarc::driver::{CudaGraph, CudaStream, sys};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, Increment, LaunchResult, Spin};
use crate::raw_graph::{mode, nodes};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("capture/modes", modes),
    ("capture/edges", edges),
    ("capture/many_edges", many_edges),
    ("capture/null_stream", null_stream),
    ("capture/first_calls", first_calls),
];

#[gpu_timed(cold, sleep)]
fn captured(stream: &Arc<CudaStream>, increment: &mut Increment) -> LaunchResult {
    ran!();
    increment.launch(stream)
}

#[gpu_timed(scope = "body", cold = "dirty", sleep = "20us")]
fn captured_body(stream: &Arc<CudaStream>, increment: &mut Increment) -> LaunchResult {
    ran!();
    increment.launch(stream)?;
    increment.launch(stream)
}

/// Launches on threads other than the capturing thread.
#[gpu_timed(cold, sleep, warmup = 5)]
fn elsewhere(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(scope = "body", cold = "dirty", sleep = "20us")]
fn elsewhere_body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Ends the capture. Returns the graph and its number of nodes.
fn end(stream: &Arc<CudaStream>) -> (CudaGraph, usize) {
    let flags = sys::CUgraphInstantiate_flags(0);
    let graph = stream.end_capture(flags).expect("the capture is intact").expect("a graph");
    let nodes = nodes(graph.cu_graph());
    (graph, nodes)
}

/// Captures on one thread in the given mode while four other threads call annotated functions. With
/// `first` as the second argument, these functions are first called during the capture; with `used`,
/// they have been called before.
fn modes(arguments: &[String]) {
    const THREADS: usize = 4;
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let mut increment = gpu.increment("capture::captured");
    let mut in_body = gpu.increment("capture::captured_body");
    let [spin, body_spin] =
        ["elsewhere", "elsewhere_body"].map(|name| gpu.spin(&format!("capture::{name}")));
    let streams = [0; THREADS].map(|_| gpu.new_stream());
    if arguments[1] == "used" {
        captured(stream, &mut increment).unwrap();
        captured_body(stream, &mut in_body).unwrap();
        for stream in &streams {
            elsewhere(stream, &spin).unwrap();
            elsewhere_body(stream, &body_spin).unwrap();
        }
        gpu.synchronize();
    }
    let ready = increment.times(stream);
    let [begun, over] = [(); 2].map(|()| Barrier::new(THREADS + 1));
    let (graph, nodes) = thread::scope(|scope| {
        for (i, stream) in streams.iter().enumerate() {
            let (begun, over, spin, body_spin) = (&begun, &over, &spin, &body_spin);
            scope.spawn(move || {
                begun.wait();
                for call in 0..50 {
                    elsewhere(stream, spin).unwrap();
                    elsewhere_body(stream, body_spin).unwrap();
                    if call % 10 == 9 {
                        assert_eq!(gpu_time::snapshot().inconsistencies(), [""; 0]);
                    }
                }
                if i == 0 {
                    gpu_time::report();
                }
                over.wait();
            });
        }
        stream.begin_capture(mode(&arguments[0])).unwrap();
        begun.wait();
        for _ in 0..3 {
            captured(stream, &mut increment).unwrap();
            captured_body(stream, &mut in_body).unwrap();
        }
        gpu_time::report();
        over.wait();
        end(stream)
    });
    tally::fact("nodes", nodes);
    for _ in 0..2 {
        graph.launch().unwrap();
    }
    gpu.synchronize();
    tally::fact("replayed", increment.times(stream) - ready);
    // Timing continues after the capture.
    captured(stream, &mut increment).unwrap();
    gpu.synchronize();
    tally::print();
}

/// Runs `f`, which begins or ends a capture, inside a bracket.
#[gpu_timed(scope = "body")]
fn around<T>(stream: &Arc<CudaStream>, f: impl FnOnce(&Arc<CudaStream>) -> T) -> T {
    ran!();
    f(stream)
}

#[gpu_timed(launch = "step")]
fn around_launches<T>(
    stream: &Arc<CudaStream>,
    first: impl FnOnce(&Arc<CudaStream>),
    second: impl FnOnce(&Arc<CudaStream>) -> T,
) -> T {
    ran!();
    step(stream, first);
    step(stream, second)
}

fn step<T>(stream: &Arc<CudaStream>, f: impl FnOnce(&Arc<CudaStream>) -> T) -> T {
    f(stream)
}

fn edges(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let spin = gpu.spin("capture::edges");
    let work = |stream: &Arc<CudaStream>| spin.launch(stream, 5_000).unwrap();
    let begin = |stream: &Arc<CudaStream>| stream.begin_capture(mode("global")).unwrap();
    for _ in 0..5 {
        // The capture begins inside the bracket and ends outside.
        around(stream, |stream| {
            work(stream);
            begin(stream);
            work(stream);
        });
        let (graph, nodes) = end(stream);
        assert_eq!(nodes, 1);
        // The capture begins outside the bracket and ends inside.
        begin(stream);
        let (_, nodes) = around(stream, |stream| {
            work(stream);
            end(stream)
        });
        assert_eq!(nodes, 1);
        // A bracket around a whole capture is unaffected, so it measures the replay.
        around(stream, |stream| {
            begin(stream);
            work(stream);
            let (graph, nodes) = end(stream);
            assert_eq!(nodes, 1);
            graph.launch().unwrap();
            gpu.synchronize();
        });
        // The first launch begins the capture, the second ends it.
        let (_, nodes) = around_launches(stream, begin, |stream| {
            work(stream);
            end(stream)
        });
        assert_eq!(nodes, 1);
        graph.launch().unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Begins more captures inside brackets than a context may have events.
fn many_edges(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    for _ in 0..40_000 {
        around(stream, |stream| stream.begin_capture(mode("relaxed")).unwrap());
        drop(stream.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap());
    }
    let spin = gpu.spin("capture::around");
    for _ in 0..10 {
        around(stream, |stream| spin.launch(stream, 5_000).unwrap());
        gpu.synchronize();
    }
    tally::print();
}

/// Specifies the NULL stream but enqueues nothing, because enqueueing alone would invalidate the
/// capture.
#[gpu_timed(scope = "body", cold, sleep)]
fn on_null(stream: &Arc<CudaStream>) {
    ran!();
    let _ = stream;
}

/// Captures a stream that synchronizes with the NULL stream, while annotated calls specify the NULL
/// stream.
fn null_stream(_: &[String]) {
    let gpu = Gpu::new();
    let mut increment = gpu.increment("capture::captured");
    let null = gpu.context.default_stream();
    let mut raw = ptr::null_mut();
    // SAFETY: writes one handle.
    unsafe { sys::cuStreamCreate(&raw mut raw, 0) }.result().unwrap();
    // SAFETY: the stream is never destroyed.
    let blocking = unsafe { gpu.context.wrap_borrowed_stream(raw) };
    on_null(&null);
    blocking.begin_capture(mode("global")).unwrap();
    captured(&blocking, &mut increment).unwrap();
    for _ in 0..5 {
        on_null(&null);
    }
    thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| on_null(&null)));
    });
    captured(&blocking, &mut increment).unwrap();
    let (graph, nodes) = end(&blocking);
    tally::fact("nodes", nodes);
    graph.launch().unwrap();
    blocking.synchronize().unwrap();
    tally::fact("replayed", increment.times(&blocking));
    tally::print();
}

/// Makes the process's first annotated calls inside a capture.
fn first_calls(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let mut increment = gpu.increment("capture::captured");
    stream.begin_capture(mode("global")).unwrap();
    for _ in 0..3 {
        captured(stream, &mut increment).unwrap();
    }
    let (graph, _) = end(stream);
    graph.launch().unwrap();
    gpu.synchronize();
    captured(stream, &mut increment).unwrap();
    gpu.synchronize();
    tally::print();
}
