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
/// The number of launches between two waits for the stream.
const BATCH: u32 = 100;

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

/// Makes calls with pauses for more than a second. It begins before anything may be recorded.
#[gpu_timed(clock = "kernels")]
fn serves(gpu: &Gpu, spin: &Spin) {
    ran!();
    let end = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < end {
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
    let (time, batch) = match (&**pace, ms.parse().map(Duration::from_millis)) {
        ("often" | "late", Ok(time)) => (time, BATCH),
        ("seldom", Ok(time)) => (time, 5),
        _ => panic!("expected `often`, `late` or `seldom`, and milliseconds"),
    };
    let gpu = Gpu::new();
    let spins = ["without_stream", "on_stream"].map(|name| gpu.spin(&format!("surcharge::{name}")));
    if *pace == "late" {
        // Like a program that loads code for a second.
        without_stream(&gpu.stream, &spins[0]).unwrap();
        thread::sleep(Duration::from_secs(1));
    }
    let end = Instant::now() + time;
    while Instant::now() < end {
        for _ in 0..batch {
            without_stream(&gpu.stream, &spins[0]).unwrap();
            if *pace != "late" {
                on_stream(&gpu.stream, &spins[1]).unwrap();
            }
        }
        gpu.synchronize();
        if batch < BATCH {
            thread::sleep(Duration::from_millis(5));
        }
    }
    tally::print();
}
