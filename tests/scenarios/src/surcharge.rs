//! A program that launches kernels often or seldom, for a budget that has room for what CUPTI adds to its launches, or
//! has not.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("surcharge/launches", launches), ("surcharge/outer", outer)];

/// Shorter than a launch takes on the host.
const NS: u64 = 1_000;
/// The number of calls between two pauses.
const BATCH: u32 = 5;
/// More calls than there are launches in four periods of the count.
const FEWEST: u32 = 5_000;
/// Programs that run for a shorter time end before the verdict.
const SHORT: Duration = Duration::from_millis(500);

#[gpu_timed(clock = "kernels")]
fn without_stream(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed(kernels)]
fn on_stream(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

#[gpu_timed(clock = "kernels", kernels = 0.25)]
fn sometimes(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, NS)
}

/// Makes calls with pauses, until there is a verdict and for a while after it. It begins before anything may be recorded.
#[gpu_timed(clock = "kernels")]
fn serves(gpu: &Gpu, spin: &Spin) {
    ran!();
    let mut calls = 0;
    while calls < FEWEST {
        calls += 10;
        (0..10).for_each(|_| sometimes(&gpu.stream, spin).unwrap());
        gpu.synchronize();
        thread::sleep(Duration::from_millis(5));
    }
}

fn outer(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("surcharge::sometimes");
    serves(&gpu, &spin);
    tally::print();
}

/// Makes calls for some milliseconds: all the time, all the time without a stream and after
/// a pause, or with pauses.
fn launches(arguments: &[String]) {
    let [pace, ms] = arguments else { panic!("expected a pace and a time") };
    let time = Duration::from_millis(ms.parse().expect("milliseconds"));
    let (is_late, is_seldom) = match &**pace {
        "often" => (false, false),
        "late" => (true, false),
        "seldom" => (false, true),
        _ => panic!("expected `often`, `late` or `seldom`"),
    };
    let gpu = Gpu::new();
    let spins = ["without_stream", "on_stream"].map(|name| gpu.spin(&format!("surcharge::{name}")));
    if is_late {
        // Like a program that loads code for a second.
        without_stream(&gpu.stream, &spins[0]).unwrap();
        thread::sleep(Duration::from_secs(1));
    }
    // A slow machine needs more time for enough launches.
    let (end, fewest) = (Instant::now() + time, if time > SHORT { FEWEST } else { 0 });
    let mut calls = 0;
    while Instant::now() < end || calls < fewest {
        calls += 1;
        without_stream(&gpu.stream, &spins[0]).unwrap();
        if !is_late {
            on_stream(&gpu.stream, &spins[1]).unwrap();
        }
        // The GPU is idle before each call, so it never sets the pace.
        gpu.synchronize();
        if is_seldom && calls % BATCH == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    if time > SHORT {
        (0..2).for_each(|_| gpu_time::open_window(Duration::from_millis(1)));
    }
    tally::print();
}
