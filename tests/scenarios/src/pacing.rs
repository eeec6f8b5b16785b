//! Calls separated by known pauses.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time;

pub const SCENARIOS: &[Scenario] = &[("pacing/fixed_pause", fixed_pause)];

/// The pause between two rounds of calls.
const PAUSE_NS: u64 = 10_000_000;

#[gpu_timed]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed]
fn two(stream: &Arc<CudaStream>, spins: &[Spin; 2]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 10_000)
}

#[gpu_timed(clock = "sync")]
fn sync(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed(clock = "host")]
fn host() {
    ran!();
    // This is real time on every driver, because the `host` clock does not follow virtual time.
    std::thread::sleep(std::time::Duration::from_millis(1));
}

fn fixed_pause(_: &[String]) {
    let gpu = Gpu::new();
    let alone = gpu.spin("pacing::one#0");
    let pair = [gpu.spin("pacing::two#0"), gpu.spin("pacing::two#1")];
    let between = gpu.spin("pacing::sync");
    for _ in 0..20 {
        one(&gpu.stream, &alone).unwrap();
        two(&gpu.stream, &pair).unwrap();
        sync(&gpu.stream, &between).unwrap();
        host();
        time::pass(PAUSE_NS);
    }
    gpu.synchronize();
    tally::print();
}
