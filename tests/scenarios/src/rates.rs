//! Functions that declare how much work each call does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] =
    &[("rates/work", work), ("rates/invalid", invalid), ("rates/panics", panics)];

/// Counts the evaluations of `amount` under `name`.
fn counted<T>(name: &str, amount: T) -> T {
    tally::count(name);
    amount
}

/// Does the same amount of work in every call.
#[gpu_timed(warmup = 3, bytes = counted("of one", 1 << 20), flops = 2e9)]
fn one(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

/// Does a different amount of work in each call, in two launches.
#[gpu_timed(bytes = &(1_000 * number), flops = number)]
fn two(stream: &Arc<CudaStream>, spins: &[Spin; 2], number: u64) -> LaunchResult {
    ran!();
    spins[0].launch(stream, 5_000)?;
    spins[1].launch(stream, 10_000)
}

/// The bytes are known only for every other call, and the FLOPs for none.
#[gpu_timed(scope = "body", bytes = 4 * known?, flops = Err::<f64, _>("unknown")?)]
fn some(stream: &Arc<CudaStream>, spin: &Spin, known: Option<u32>) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

/// Runs on the CPU, because it has no stream.
#[gpu_timed(stream = None::<&CudaStream>, bytes = 64)]
fn none() {
    ran!();
    crate::time::pass(1_000);
}

#[gpu_timed(clock = "host", warmup = 2, flops = counted("of host", Some(&7)))]
fn host() {
    ran!();
    crate::time::pass(1_000);
}

/// The launch returns an error, so this call has no known work.
#[gpu_timed(bytes = 1, launch = "launch_badly")]
fn fails(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch_badly(stream)
}

/// Calls every function twelve times, while the device is kept busy until all calls are enqueued.
fn work(_: &[String]) {
    let gpu = Gpu::new();
    let spin = |name: &str| gpu.spin(&format!("rates::{name}"));
    let (first, pair, body) = (spin("one"), [spin("two#0"), spin("two#1")], spin("some"));
    let (bad, blocker) = (spin("fails"), spin("blocker"));
    for number in 0..12u32 {
        blocker.launch(&gpu.stream, 2_000_000).unwrap();
        one(&gpu.stream, &first).unwrap();
        two(&gpu.stream, &pair, number.into()).unwrap();
        some(&gpu.stream, &body, (number % 2 == 0).then_some(number)).unwrap();
        none();
        host();
        fails(&gpu.stream, &bad).unwrap_err();
        gpu.synchronize();
    }
    gpu_time::set_enabled(false);
    one(&gpu.stream, &first).unwrap();
    host();
    gpu_time::set_enabled(true);
    tally::print();
}

#[gpu_timed(scope = "body", bytes = 1_000, flops = flops)]
fn measured(stream: &Arc<CudaStream>, spin: &Spin, flops: f64) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

#[gpu_timed(clock = "host", bytes = -1)]
fn negative() {
    ran!();
    crate::time::pass(1_000);
}

/// Declares amounts of work, some of which are invalid.
fn invalid(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("rates::measured");
    for flops in [-1.0, f64::NAN, f64::INFINITY, 0.0, 2e9] {
        measured(&gpu.stream, &spin, flops).unwrap();
        gpu.synchronize();
    }
    negative();
    gpu_time::set_enabled(false);
    negative();
    gpu_time::set_enabled(true);
    tally::print();
}

#[gpu_timed(bytes = panicking())]
fn never_entered(stream: &Arc<CudaStream>) {
    let _ = stream;
}

fn panicking() -> u64 {
    tally::count_run("scenario::rates::never_entered");
    panic!("intentional panic")
}

/// Checks that a panic in the `bytes` expression propagates to the program.
fn panics(_: &[String]) {
    let gpu = Gpu::new();
    for _ in 0..4 {
        assert!(catch_unwind(AssertUnwindSafe(|| never_entered(&gpu.stream))).is_err());
    }
    tally::print();
}
