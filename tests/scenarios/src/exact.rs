//! Every kind of bracket, fed and starved, with known durations.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("exact/fed", fed), ("exact/starved", starved)];

#[gpu_timed]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed]
fn three(stream: &Arc<CudaStream>, spins: &[Spin; 3]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 10_000)?;
    spins[2].launch(stream, 20_000)
}

#[gpu_timed(scope = "body")]
fn body(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    spin.launch(stream, 10_000)?;
    spin.launch(stream, 20_000)
}

#[gpu_timed(scope = "body")]
fn nothing(stream: &Arc<CudaStream>) {
    ran!();
    let _ = stream;
}

#[gpu_timed(sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed(sleep = "2ms")]
fn delayed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

struct Spins {
    one: Spin,
    three: [Spin; 3],
    body: Spin,
    held: Spin,
    delayed: Spin,
    blocker: Spin,
}

impl Spins {
    fn new(gpu: &Gpu) -> Self {
        let spin = |name| gpu.spin(&format!("exact::{name}"));
        Spins {
            one: spin("one"),
            three: [spin("three#0"), spin("three#1"), spin("three#2")],
            body: spin("body"),
            held: spin("held"),
            delayed: spin("delayed"),
            blocker: spin("blocker"),
        }
    }

    fn call_all(&self, stream: &Arc<CudaStream>) {
        one(stream, &self.one).unwrap();
        three(stream, &self.three).unwrap();
        body(stream, &self.body).unwrap();
        nothing(stream);
    }
}

/// Keeps the device busy until everything has been enqueued. The optional argument limits the
/// number of brackets in the trace.
fn fed(arguments: &[String]) {
    if let Some(last) = arguments.first() {
        gpu_time::configure().trace_last(last.parse::<usize>().unwrap()).apply();
    }
    let gpu = Gpu::new();
    let spins = Spins::new(&gpu);
    for round in 0..30 {
        // The first call registers the context, which takes longer.
        let busy_ms = if round == 0 { 100 } else { 2 };
        spins.blocker.launch(&gpu.stream, busy_ms * 1_000_000).unwrap();
        // There are too few calls for any of them to have a queue behind it.
        spins.call_all(&gpu.stream);
        gpu.synchronize();
        if round % 3 == 0 {
            held(&gpu.stream, &spins.held).unwrap();
            delayed(&gpu.stream, &spins.delayed).unwrap();
            gpu.synchronize();
        }
    }
    tally::print();
}

/// Makes every launch and call on an empty stream.
fn starved(_: &[String]) {
    let gpu = Gpu::new();
    let spins = Spins::new(&gpu);
    for _ in 0..30 {
        one(&gpu.stream, &spins.one).unwrap();
        gpu.synchronize();
        body(&gpu.stream, &spins.body).unwrap();
        gpu.synchronize();
        nothing(&gpu.stream);
        gpu.synchronize();
    }
    tally::print();
}
