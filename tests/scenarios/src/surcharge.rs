//! A program whose kernels a budget may have no room for, and one that sets its budget while it runs.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] =
    &[("surcharge/kernels", kernels), ("surcharge/events", events), ("surcharge/later", later)];

const NS: u64 = 10_000;
/// The number of calls of each function.
const CALLS: u32 = 20;

#[gpu_timed(clock = "kernels")]
fn without_stream(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed]
fn on_stream(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed]
fn by_events(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

/// Calls functions that ask for their kernels, and asks for phases.
fn kernels(_: &[String]) {
    let gpu = Gpu::new();
    let spins = ["without_stream", "on_stream"].map(|name| gpu.spin(&format!("surcharge::{name}")));
    for _ in 0..CALLS {
        without_stream(&gpu.stream, &spins[0]).unwrap();
        on_stream(&gpu.stream, &spins[1]).unwrap();
    }
    gpu.synchronize();
    (0..2).for_each(|_| gpu_time::record_phase(Duration::from_millis(1)));
    tally::print();
}

fn events(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("surcharge::by_events");
    (0..CALLS).for_each(|_| by_events(&gpu.stream, &spin).unwrap());
    gpu.synchronize();
    tally::print();
}

/// Calls a function without a budget, with one, and without one again.
fn later(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("surcharge::without_stream");
    for budget in [None, Some(0.01), None] {
        gpu_time::configure().budget(budget).apply();
        (0..CALLS).for_each(|_| without_stream(&gpu.stream, &spin).unwrap());
        gpu.synchronize();
    }
    tally::print();
}
