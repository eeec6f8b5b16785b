//! Functions timed between two barriers on their stream (`clock = "sync"`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use cudarc::driver::{CudaStream, sys};
use gpu_time::gpu_timed;
use sys::CUstreamCaptureMode as Mode;

use crate::gpu::{Copy, Gpu, Increment, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("barriers/kinds", kinds),
    ("barriers/one_function", one_function),
    ("barriers/capture", capture),
    ("barriers/abandoned", abandoned),
];

/// The size of each buffer: 3.75 MiB.
const BYTES: usize = 15 << 18;

/// The macro sees the launch, but the barriers enclose the whole body.
#[gpu_timed(clock = "sync", bytes = 1_000_000)]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed(clock = "sync", warmup = 2)]
fn two(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)?;
    spin.launch(stream, 20_000)
}

/// The flush completes before the first timestamp is taken.
#[gpu_timed(clock = "sync", cold)]
fn cold(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

#[gpu_timed(clock = "sync")]
fn on_null(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Runs on the CPU if there is no stream.
#[gpu_timed(clock = "sync")]
fn maybe(stream: Option<&Arc<CudaStream>>) {
    ran!();
    let _ = stream;
}

/// Contains a function timed by events inside its barriers.
#[gpu_timed(clock = "sync")]
fn outside(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    inside(stream, spin)
}

#[gpu_timed(scope = "body", cold)]
fn inside(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    barred(stream, spin)
}

#[gpu_timed(clock = "sync", cold)]
fn barred(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

fn kinds(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let null = gpu.context.default_stream();
    let spin = gpu.spin("barriers::kinds");
    let mut copy = gpu.copy("barriers::cold", BYTES);
    for _ in 0..10 {
        // Keeps the stream busy. The first barrier must wait for this.
        spin.launch(stream, 1_000_000).unwrap();
        one(stream, &spin).unwrap();
        two(stream, &spin).unwrap();
        cold(stream, &mut copy).unwrap();
        on_null(&null, &spin).unwrap();
        maybe(Some(stream));
        maybe(None);
        outside(stream, &spin).unwrap();
        around(stream, &spin).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Calls only a single function.
fn one_function(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("barriers::one_function");
    for _ in 0..20 {
        one(&gpu.stream, &spin).unwrap();
    }
    tally::fact("alive", gpu.stream.synchronize().is_ok());
    tally::print();
}

#[gpu_timed(clock = "sync", cold)]
fn captured(stream: &Arc<CudaStream>, increment: &mut Increment) -> LaunchResult {
    ran!();
    increment.launch(stream)
}

#[gpu_timed(clock = "sync", cold = "dirty")]
fn elsewhere(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Begins a capture, which is still active at the second barrier.
#[gpu_timed(clock = "sync")]
fn begins(stream: &Arc<CudaStream>) -> LaunchResult {
    ran!();
    stream.begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL)
}

/// Checks that a capture continues while its own thread and another thread pass barriers on other
/// streams.
fn capture(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let mut increment = gpu.increment("barriers::captured");
    let spin = gpu.spin("barriers::elsewhere");
    let streams = [gpu.new_stream(), gpu.new_stream()];
    // The first launch loads the kernel, which must not happen during the capture.
    spin.launch(stream, 5_000).unwrap();
    let ready = increment.times(stream);
    begins(stream).unwrap();
    for _ in 0..3 {
        captured(stream, &mut increment).unwrap();
        elsewhere(&streams[0], &spin).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| elsewhere(&streams[1], &spin).unwrap()));
    });
    let flags = sys::CUgraphInstantiate_flags(0);
    let graph = stream.end_capture(flags).expect("the capture is intact").expect("a graph");
    graph.launch().unwrap();
    gpu.synchronize();
    tally::fact("replayed", increment.times(stream) - ready);
    captured(stream, &mut increment).unwrap();
    tally::print();
}

#[gpu_timed(clock = "sync")]
fn unwinds(stream: &Arc<CudaStream>, spin: &Spin) {
    ran!();
    spin.launch(stream, 5_000).unwrap();
    panic!("intentional panic");
}

/// Drops the last owner of its stream.
#[gpu_timed(clock = "sync")]
fn drops(stream: Arc<CudaStream>, spin: &Spin) {
    ran!();
    spin.launch(&stream, 5_000).unwrap();
    drop(stream);
}

fn abandoned(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("barriers::abandoned");
    for _ in 0..5 {
        let unwound = catch_unwind(AssertUnwindSafe(|| unwinds(&gpu.stream, &spin)));
        assert!(unwound.is_err());
        drops(gpu.new_stream(), &spin);
        // No bracket is open any longer, so this call is not nested.
        one(&gpu.stream, &spin).unwrap();
    }
    tally::print();
}
