//! Functions whose kernels are recorded: nested, without a stream, on several streams and threads, and
//! async.

use std::future::Future;
use std::pin::pin;
use std::process;
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaGraph, CudaSlice, CudaStream, sys};
use gpu_time::{Settle, gpu_timed};

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::later::later;
use crate::raw_graph::mode;
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("kernels/async", asynchronous),
    ("kernels/brackets_inside", brackets_inside),
    ("kernels/elsewhere", elsewhere),
    ("kernels/default_streams", default_streams),
    ("kernels/own_context", own_context),
    ("kernels/after_stop", after_stop),
    ("kernels/events", events),
    ("kernels/inside_events", inside_events),
    ("kernels/captured", captured),
    ("kernels/fork_inside", fork_inside),
    ("kernels/fork_join", fork_join),
    ("kernels/helper", helper),
    ("kernels/memory", memory),
    ("kernels/nested", nested),
    ("kernels/pending", pending),
    ("kernels/settle", settle),
    ("kernels/depths", depths),
    ("kernels/asked_first", asked_first),
    ("kernels/threads", threads),
    ("kernels/traced", traced),
    ("kernels/many", many),
    ("kernels/slow_graph", slow_graph),
    ("kernels/captured_per_thread", captured_per_thread),
    ("kernels/two_gpus", two_gpus),
];

/// The durations of the kernels, different enough to be distinguished.
const SHORT: u64 = 10_000;
const LONG: u64 = 30_000;

struct Kernels {
    stream: Arc<CudaStream>,
    outer: Spin,
    inner: Spin,
    leaf: Spin,
}

impl Kernels {
    fn new(gpu: &Gpu, stream: Arc<CudaStream>) -> Kernels {
        let spin = |place| gpu.spin(place);
        Kernels { stream, outer: spin("outer"), inner: spin("inner"), leaf: spin("leaf") }
    }
}

/// Launches a kernel, calls `inner` twice, and launches another kernel.
#[gpu_timed]
fn outer(kernels: &Kernels) -> LaunchResult {
    ran!();
    kernels.outer.launch(&kernels.stream, SHORT)?;
    inner(kernels)?;
    inner(kernels)?;
    kernels.outer.launch(&kernels.stream, SHORT)
}

/// Launches two kernels, with a call of `leaf` in between.
#[gpu_timed]
fn inner(kernels: &Kernels) -> LaunchResult {
    ran!();
    kernels.inner.launch(&kernels.stream, LONG)?;
    leaf(kernels)?;
    kernels.inner.launch(&kernels.stream, LONG)
}

#[gpu_timed]
fn leaf(kernels: &Kernels) -> LaunchResult {
    ran!();
    kernels.leaf.launch(&kernels.stream, SHORT)
}

fn nested(arguments: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..arguments[0].parse().unwrap() {
        outer(&kernels).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Ends the process while kernels are pending.
fn pending(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..20 {
        outer(&kernels).unwrap();
    }
    tally::print();
}

#[gpu_timed]
fn copies(gpu: &Gpu, bytes: usize) {
    ran!();
    let mut zeros = gpu.stream.alloc_zeros::<u8>(bytes).unwrap();
    gpu.stream.memcpy_htod(&vec![1; bytes], &mut zeros).unwrap();
    assert!(gpu.stream.clone_dtoh(&zeros).unwrap().iter().all(|&byte| byte == 1));
}

/// Makes copies and memsets, and calls that launch nothing.
fn memory(_: &[String]) {
    let gpu = Gpu::new();
    for _ in 0..10 {
        copies(&gpu, 1 << 16);
    }
    for _ in 0..5 {
        nothing();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn nothing() {
    ran!();
}

#[gpu_timed(stream = stream, scope = "body")]
fn on_two_streams(stream: &Arc<CudaStream>, other: &Arc<CudaStream>, spins: &[Spin; 2]) {
    ran!();
    spins[0].launch(stream, SHORT).unwrap();
    spins[1].launch(other, LONG).unwrap();
}

/// Calls a function that also launches on a stream other than its own.
fn elsewhere(_: &[String]) {
    let gpu = Gpu::new();
    let other = gpu.new_stream();
    let spins = [gpu.spin("here"), gpu.spin("elsewhere")];
    for _ in 0..10 {
        on_two_streams(&gpu.stream, &other, &spins);
        gpu.synchronize();
    }
    tally::print();
}

/// Does the same on the default streams of two GPUs, whose handles are equal.
fn default_streams(_: &[String]) {
    let gpus = [0, 1].map(Gpu::at);
    let [stream, other] = [0, 1].map(|at: usize| gpus[at].context.default_stream());
    let spins = [gpus[0].spin("here"), gpus[1].spin("elsewhere")];
    for _ in 0..10 {
        on_two_streams(&stream, &other, &spins);
        gpus.iter().for_each(Gpu::synchronize);
    }
    tally::print();
}

/// Creates a context, and destroys it before the call ends.
#[gpu_timed(clock = "kernels")]
fn in_own_context(ordinal: usize) {
    ran!();
    let gpu = Gpu::in_own_context(ordinal);
    gpu.spin("own").launch(&gpu.stream, SHORT).unwrap();
    gpu.synchronize();
}

fn own_context(_: &[String]) {
    let gpu = Gpu::new();
    (0..10).for_each(|_| in_own_context(1));
    gpu.synchronize();
    tally::print();
}

/// The macro sees the first launch. A function that the macro does not know makes the second launch on
/// the same stream.
#[gpu_timed(stream = stream)]
fn launches_more(stream: &Arc<CudaStream>, spins: &[Spin; 2]) {
    ran!();
    spins[0].launch(stream, SHORT).unwrap();
    quietly(stream, &spins[1]);
}

fn quietly(stream: &Arc<CudaStream>, spin: &Spin) {
    spin.launch(stream, LONG).unwrap();
}

/// Calls a function that enqueues more than the launches that events bracket.
fn after_stop(_: &[String]) {
    let gpu = Gpu::new();
    let spins = [gpu.spin("here"), gpu.spin("elsewhere")];
    for _ in 0..10 {
        launches_more(&gpu.stream, &spins);
        gpu.synchronize();
    }
    tally::print();
}

/// Launches the second and third kernels on another stream, between a fork and a join.
#[gpu_timed(stream = stream, scope = "body")]
fn forks_and_joins(stream: &Arc<CudaStream>, other: &Arc<CudaStream>, spins: &[Spin; 2]) {
    ran!();
    spins[0].launch(stream, SHORT).unwrap();
    other.join(stream).unwrap();
    spins[1].launch(other, LONG).unwrap();
    spins[1].launch(other, LONG).unwrap();
    stream.join(other).unwrap();
    spins[0].launch(stream, SHORT).unwrap();
}

/// Calls a function that forks to another stream and joins it again with events.
fn fork_join(_: &[String]) {
    let gpu = Gpu::new();
    let other = gpu.new_stream();
    let spins = [gpu.spin("here"), gpu.spin("elsewhere")];
    for _ in 0..10 {
        forks_and_joins(&gpu.stream, &other, &spins);
        gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed]
fn hands_over(kernels: &Kernels, help: impl FnOnce()) -> LaunchResult {
    ran!();
    kernels.outer.launch(&kernels.stream, SHORT)?;
    help();
    kernels.outer.launch(&kernels.stream, SHORT)
}

/// Calls a function that hands part of its work to a helper thread, and waits until the work is enqueued.
/// The helper enqueues on the same stream, and also calls an annotated function.
fn helper(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    let (jobs, received) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel();
    let (kernels, plain) = (&kernels, gpu.spin("plain"));
    thread::scope(|scope| {
        scope.spawn(move || {
            for () in received {
                plain.launch(&kernels.stream, LONG).unwrap();
                plain.launch(&kernels.stream, LONG).unwrap();
                leaf(kernels).unwrap();
                done.send(()).unwrap();
            }
        });
        for _ in 0..10 {
            let help = || {
                jobs.send(()).unwrap();
                is_done.recv().unwrap();
            };
            hands_over(kernels, help).unwrap();
            gpu.synchronize();
        }
        drop(jobs);
    });
    tally::print();
}

/// Forks inside an opened call. The child returns from the call, makes another call and exits.
fn fork_inside(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    let parent = process::id();
    let mut child = 0;
    // SAFETY: no other thread in the program holds a lock that the child needs.
    let fork = || child = unsafe { libc::fork() };
    hands_over_in_child(&kernels, parent, fork);
    if process::id() != parent {
        nothing();
        gpu_time::report();
        process::exit(3);
    }
    child::assert_exits(child, 3);
    for _ in 0..3 {
        outer(&kernels).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Launches before and after the fork. The child, which cannot use the GPU, does not launch.
#[gpu_timed]
fn hands_over_in_child(kernels: &Kernels, parent: u32, fork: impl FnOnce()) {
    ran!();
    kernels.outer.launch(&kernels.stream, SHORT).unwrap();
    fork();
    if process::id() == parent {
        kernels.outer.launch(&kernels.stream, SHORT).unwrap();
    }
}

/// Captures a graph inside an opened call, and replays it there.
#[gpu_timed]
fn captures(kernels: &Kernels) -> CudaGraph {
    ran!();
    let Kernels { stream, outer, .. } = kernels;
    outer.launch(stream, SHORT).unwrap();
    let graph = capture(stream, || {
        outer.launch(stream, SHORT).unwrap();
        leaf(kernels).unwrap();
    });
    graph.launch().unwrap();
    graph
}

fn capture(stream: &Arc<CudaStream>, work: impl FnOnce()) -> CudaGraph {
    stream.begin_capture(mode("relaxed")).unwrap();
    work();
    let flags = sys::CUgraphInstantiate_flags(0);
    stream.end_capture(flags).expect("the capture is intact").expect("a graph")
}

/// Captures inside opened calls, and makes opened calls inside captures.
fn captured(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..5 {
        drop(captures(&kernels));
        gpu.synchronize();
    }
    let graph = capture(&gpu.stream, || outer(&kernels).unwrap());
    graph.launch().unwrap();
    gpu.synchronize();
    for _ in 0..5 {
        inner(&kernels).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Captures inside opened calls, on the thread's own default stream.
fn captured_per_thread(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.context.per_thread_stream());
    for _ in 0..3 {
        drop(captures(&kernels));
        kernels.stream.synchronize().unwrap();
    }
    tally::print();
}

#[gpu_timed]
fn launches_graph(kernels: &Kernels, graph: &CudaGraph) {
    ran!();
    kernels.outer.launch(&kernels.stream, SHORT).unwrap();
    graph.launch().unwrap();
}

/// Launches a graph of a short kernel and a kernel that takes longer than several collections.
fn slow_graph(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    let graph = capture(&gpu.stream, || {
        kernels.inner.launch(&kernels.stream, SHORT).unwrap();
        kernels.leaf.launch(&kernels.stream, 800_000_000).unwrap();
    });
    for _ in 0..3 {
        launches_graph(&kernels, &graph);
        crate::time::pass(1_000_000);
        thread::sleep(Duration::from_secs(1));
        gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed(clock = "kernels")]
fn waits(gpu: &Gpu, kernels: &Kernels, other: &Arc<CudaStream>) {
    ran!();
    outer(kernels).unwrap();
    kernels.leaf.launch(other, SHORT).unwrap();
    drop(gpu.stream.alloc_zeros::<u8>(1 << 16).unwrap());
    gpu.synchronize();
}

/// Makes calls that wait for their kernels, and calls timed by events on the same stream.
fn traced(_: &[String]) {
    let gpu = Gpu::new();
    let (kernels, other) = (Kernels::new(&gpu, gpu.stream.clone()), gpu.new_stream());
    let spin = gpu.spin("kernels::measured");
    for _ in 0..10 {
        waits(&gpu, &kernels, &other);
        measured(&gpu.stream, &spin).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

#[gpu_timed]
fn measured(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, LONG)
}

#[gpu_timed(sleep, cold)]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, LONG)
}

#[gpu_timed(warmup = 5)]
fn first_and_some(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, LONG)
}

#[gpu_timed(clock = "kernels")]
fn around_bracket(stream: &Arc<CudaStream>, spin: &Spin, other: &Spin) -> LaunchResult {
    ran!();
    bracket(stream, spin)?;
    other.launch(stream, LONG)
}

#[gpu_timed(stream = stream)]
fn bracket(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, LONG)
}

/// Makes the first call of a function timed by events inside an opened call, and the second outside.
fn brackets_inside(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("kernels::bracket"), gpu.spin("other"));
    around_bracket(&gpu.stream, &spin, &other).unwrap();
    gpu.synchronize();
    bracket(&gpu.stream, &spin).unwrap();
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, kernels: &Kernels) -> LaunchResult {
    let _ = stream;
    ran!();
    leaf(kernels)
}

/// Calls a function without a stream inside a function timed by events.
fn inside_events(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..50 {
        around(&gpu.stream, &kernels).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Calls functions timed by events.
fn events(_: &[String]) {
    let gpu = Gpu::new();
    let (half, some) = (gpu.spin("kernels::by_events"), gpu.spin("kernels::first_and_some"));
    for _ in 0..400 {
        by_events(&gpu.stream, &half).unwrap();
        first_and_some(&gpu.stream, &some).unwrap();
        gpu.synchronize();
    }
    tally::print();
}

/// Launches a kernel on each of two GPUs, and copies from the first to the second.
#[gpu_timed]
fn on_both(
    [first, second]: [&Gpu; 2],
    spins: &[Spin; 2],
    from: &CudaSlice<u8>,
    to: &mut CudaSlice<u8>,
) -> LaunchResult {
    ran!();
    spins[0].launch(&first.stream, SHORT)?;
    spins[1].launch(&second.stream, LONG)?;
    second.stream.memcpy_dtod(from, to)
}

fn two_gpus(arguments: &[String]) {
    let bytes = arguments[0].parse().unwrap();
    let gpus = [0, 1].map(Gpu::at);
    let spins = [gpus[0].spin("first"), gpus[1].spin("second")];
    let from = gpus[0].stream.alloc_zeros::<u8>(bytes).unwrap();
    let mut to = gpus[1].stream.alloc_zeros::<u8>(bytes).unwrap();
    for _ in 0..10 {
        gpus.iter().for_each(Gpu::synchronize);
        on_both([&gpus[0], &gpus[1]], &spins, &from, &mut to).unwrap();
    }
    gpus.iter().for_each(Gpu::synchronize);
    tally::print();
}

#[gpu_timed]
fn deep(kernels: &Kernels, ns: u64) -> LaunchResult {
    ran!();
    kernels.inner.launch(&kernels.stream, ns)
}

#[gpu_timed]
fn around_deep(kernels: &Kernels) -> LaunchResult {
    ran!();
    deep(kernels, 20 * SHORT)
}

/// Calls a function alone and, for longer, inside another one.
fn depths(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..2_000 {
        deep(&kernels, SHORT).unwrap();
        around_deep(&kernels).unwrap();
        gpu.synchronize();
        // Leaves time for more phases.
        thread::sleep(Duration::from_micros(200));
    }
    tally::print();
}

/// Asks for a phase before the first call, which begins a phase of the whole run in the other one.
fn asked_first(_: &[String]) {
    gpu_time::record_phase(Duration::from_millis(30));
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for _ in 0..200 {
        deep(&kernels, SHORT).unwrap();
        gpu.synchronize();
        thread::sleep(Duration::from_micros(500));
    }
    tally::print();
}

/// Lets a function without a stream settle, and compares it with itself.
fn settle(_: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    let settle = || Settle::default().margin(0.05).timeout(Duration::from_secs(60));
    let call = || {
        leaf(&kernels).unwrap();
        gpu.synchronize();
    };
    let settled = gpu_time::until_stable(settle(), call);
    tally::fact("unmet", settled.unmet.len());
    let snapshot = settled.snapshot;
    let series = snapshot.sites.iter().flat_map(|site| &site.series);
    let opened: u64 = series.map(|series| series.opened()).sum();
    tally::fact("settled", opened);
    let compared = gpu_time::compare(settle(), ("one", call), ("same", call));
    let ratio = compared.ratios[0].ratio().expect("a ratio");
    tally::fact("percent", (ratio * 100.0).round());
    tally::print();
}

/// Opens calls on several threads at once, while another thread launches outside any call.
fn threads(_: &[String]) {
    let gpu = Gpu::new();
    let plain = gpu.spin("plain");
    thread::scope(|scope| {
        for _ in 0..4 {
            let kernels = Kernels::new(&gpu, gpu.new_stream());
            scope.spawn(move || {
                for _ in 0..50 {
                    outer(&kernels).unwrap();
                    kernels.stream.synchronize().unwrap();
                }
            });
        }
        let stream = gpu.new_stream();
        let plain = &plain;
        scope.spawn(move || {
            for _ in 0..100 {
                plain.launch(&stream, SHORT).unwrap();
                stream.synchronize().unwrap();
            }
        });
    });
    gpu.synchronize();
    tally::print();
}

/// Calls a function so often that buffers are reused many times.
fn many(arguments: &[String]) {
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    for call in 0..arguments[0].parse().unwrap() {
        leaf(&kernels).unwrap();
        if call % 64 == 0 {
            gpu.synchronize();
        }
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
async fn async_outer(kernels: &Kernels) {
    ran!();
    kernels.outer.launch(&kernels.stream, SHORT).unwrap();
    async_inner(kernels).await;
    kernels.outer.launch(&kernels.stream, SHORT).unwrap();
}

#[gpu_timed]
async fn async_inner(kernels: &Kernels) {
    ran!();
    kernels.inner.launch(&kernels.stream, LONG).unwrap();
    later().await;
    kernels.inner.launch(&kernels.stream, LONG).unwrap();
}

/// Polls two futures alternately, with launches outside any call in between. With `report`, takes a snapshot
/// after each poll, including when one call has ended and the other is suspended.
fn asynchronous(args: &[String]) {
    let is_reporting = args.iter().any(|arg| arg == "report");
    let gpu = Gpu::new();
    let kernels = Kernels::new(&gpu, gpu.stream.clone());
    let plain = gpu.spin("plain");
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10 {
        let mut one = pin!(async_outer(&kernels));
        let mut other = pin!(async_outer(&kernels));
        let mut are_ready = [false; 2];
        while are_ready != [true; 2] {
            let futures = [one.as_mut(), other.as_mut()];
            for (future, is_ready) in futures.into_iter().zip(&mut are_ready) {
                if !*is_ready {
                    *is_ready = future.poll(&mut context).is_ready();
                }
                plain.launch(&gpu.stream, SHORT).unwrap();
                if is_reporting {
                    gpu.synchronize();
                    gpu_time::snapshot();
                }
            }
        }
        gpu.synchronize();
    }
    tally::print();
}
