//! Calls at known distances in time.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DriverError};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};
use crate::time;

pub const SCENARIOS: &[Scenario] = &[("course/paced", paced)];

type Done = Result<(), DriverError>;

/// Between one call and the next.
const PAUSE_NS: u64 = 10_000_000;

#[gpu_timed]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed]
fn two(stream: &Arc<CudaStream>, spins: &[Spin; 2]) -> Done {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 10_000)
}

#[gpu_timed(clock = "sync")]
fn sync(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed(clock = "host")]
fn host() {
    ran!();
    // Real time everywhere: the host's clock knows no other.
    std::thread::sleep(std::time::Duration::from_millis(1));
}

fn paced(_: &[String]) {
    let gpu = Gpu::new();
    let alone = gpu.spin("course::one#0");
    let pair = [gpu.spin("course::two#0"), gpu.spin("course::two#1")];
    let between = gpu.spin("course::sync");
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
