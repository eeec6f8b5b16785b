//! The attribute's keys, and how the environment and the program can override them.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Copy, Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time::now_ns;

pub const SCENARIOS: &[Scenario] = &[
    ("options/keys", keys),
    ("options/switched", switched),
    ("options/snapshots", snapshots),
    ("options/waits", waits),
    ("options/traced", traced),
];

/// 3.75 MiB each, so both buffers fit into the L2 many times over.
const BYTES: usize = 15 << 18;

#[gpu_timed(sleep)]
fn hot(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

#[gpu_timed(cold, sleep)]
fn cold(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

#[gpu_timed(cold = "dirty", sleep)]
fn cold_dirty(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

/// Only the first of the three launches finds the L2 flushed.
#[gpu_timed(cold)]
fn cold_thrice(stream: &Arc<CudaStream>, spins: &[Spin; 3]) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 5_000)?;
    spins[2].launch(stream, 5_000)
}

#[gpu_timed(sleep = "50us")]
fn delayed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

const WARMUP: u32 = 2;

#[gpu_timed(warmup = WARMUP * 2, name = "warm it up")]
fn warmed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!("warm it up");
    spin.launch(stream, 5_000)
}

struct Programs {
    gpu: Gpu,
    copies: [Copy; 3],
    thrice: [Spin; 3],
    delayed: Spin,
    warmed: Spin,
}

impl Programs {
    fn new() -> Self {
        let gpu = Gpu::new();
        Programs {
            copies: ["hot", "cold", "cold_dirty"]
                .map(|name| gpu.copy(&format!("options::{name}"), BYTES)),
            thrice: [0, 1, 2].map(|i| gpu.spin(&format!("options::cold_thrice#{i}"))),
            delayed: gpu.spin("options::delayed"),
            warmed: gpu.spin("warm it up"),
            gpu,
        }
    }

    /// Calls every function once.
    fn call_all(&mut self) {
        let stream = &self.gpu.stream;
        hot(stream, &mut self.copies[0]).unwrap();
        // The copies made by `hot` stay in the L2 only if nothing evicts them in between.
        hot(stream, &mut self.copies[0]).unwrap();
        cold(stream, &mut self.copies[1]).unwrap();
        // The search for a flush method runs on a separate stream, concurrently with other work.
        self.gpu.synchronize();
        cold_dirty(stream, &mut self.copies[2]).unwrap();
        cold_thrice(stream, &self.thrice).unwrap();
        delayed(stream, &self.delayed).unwrap();
        warmed(stream, &self.warmed).unwrap();
        self.gpu.synchronize();
    }
}

/// Calls every function twenty times. The environment may override the keys.
fn keys(_: &[String]) {
    let mut programs = Programs::new();
    for _ in 0..20 {
        programs.call_all();
    }
    tally::print();
}

/// Waits for its stream while the stream is held.
#[gpu_timed(scope = "body", sleep)]
fn waits_inside(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)?;
    stream.synchronize()
}

fn waits(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("options::waits_inside");
    waits_inside(&gpu.stream, &spin).unwrap();
    let began_ns = now_ns();
    for _ in 1..40 {
        waits_inside(&gpu.stream, &spin).unwrap();
    }
    tally::fact("all_but_the_first_us", (now_ns() - began_ns) / 1_000);
    tally::print();
}

/// Runs with timing off at first, then on, then off again.
fn switched(_: &[String]) {
    let mut programs = Programs::new();
    gpu_time::set_enabled(false);
    for i in 0..30 {
        if i % 10 == 0 {
            gpu_time::set_enabled(i == 10);
        }
        programs.call_all();
    }
    tally::print();
}

/// Requests a trace, then none, then another. The program passes on the targets given by the
/// environment.
fn traced(_: &[String]) {
    let all = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: no other thread is running.
    unsafe { std::env::remove_var("GPU_TIME_REPORT") };
    let (others, _) = all.split_once(",trace:").unwrap();
    gpu_time::configure().report(&all).apply();
    let mut programs = Programs::new();
    let mut calls = |targets, times| {
        gpu_time::configure().report(targets).apply();
        for _ in 0..times {
            programs.call_all();
        }
        // Drain the samples now. If they were drained later, they would belong to the next trace.
        drop(gpu_time::snapshot());
    };
    calls(&all, 3);
    calls(others, 10);
    calls(&all, 5);
    tally::print();
}

/// Takes snapshots and prints reports between calls.
fn snapshots(_: &[String]) {
    let mut programs = Programs::new();
    for round in 1..=20u64 {
        programs.call_all();
        let snapshot = gpu_time::snapshot();
        assert_eq!(snapshot.inconsistencies(), [""; 0]);
        let site = snapshot.site("scenario::options::delayed").expect("the function was called");
        assert_eq!((site.calls, site.timed, site.warmup), (round, round, 0));
        let row = &site.series[0];
        assert_eq!((row.timed, row.measured, row.in_flight), (round, round, 0));
        if round % 10 == 0 {
            gpu_time::report();
        }
    }
    tally::print();
}
