//! Fed and starved brackets side by side, distinguishable by their durations.
//!
//! The kernel has a fixed duration. If a bracket takes longer than a held bracket around the same
//! kernel, the GPU has waited for the host inside it.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time::pass;

pub const SCENARIOS: &[Scenario] =
    &[("fed/delays", delays), ("fed/queue", queue), ("fed/nested", nested)];

const KERNEL_NS: u64 = 5_000;
/// Enough calls to distinguish a rate of one in two hundred from chance.
const CALLS: usize = 2_400;
/// A bracket that exceeds the held brackets' 95th percentile by more than this counts as having waited.
const OFF_NS: f64 = 500.0;

/// Delays the host twice: between start and launch, and between launch and stop.
#[gpu_timed(scope = "body")]
fn delayed(stream: &Arc<CudaStream>, spin: &Spin, [before, after]: [u64; 2]) -> LaunchResult {
    ran!();
    pass(before);
    spin.launch(stream, KERNEL_NS)?;
    pass(after);
    Ok(())
}

#[gpu_timed(scope = "body", sleep)]
fn held(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, KERNEL_NS)
}

#[gpu_timed]
fn queued(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, KERNEL_NS)
}

/// The totals over one site's series before a call, used to compute what the call added.
#[derive(Clone, Copy, Default)]
struct Totals {
    measured: u64,
    fed: u64,
    sum_ns: f64,
}

impl Totals {
    fn of(site: &str) -> Totals {
        let snapshot = gpu_time::snapshot();
        let sites = &snapshot.sites;
        let site = sites.iter().find(|known| known.name == site).expect("it was called");
        let rows = site.series.iter().filter(|row| row.launch.is_none());
        rows.fold(Totals::default(), |totals, row| Totals {
            measured: totals.measured + row.measured,
            fed: totals.fed + row.fed,
            sum_ns: totals.sum_ns + row.raw_ns.map_or(0.0, |raw| raw.sum),
        })
    }
}

/// Launches a kernel ahead of most brackets and delays the host inside the brackets, each for a random
/// time. The GPU sometimes reaches the start long before the stop is enqueued, sometimes long after,
/// and often at about the same time.
fn delays(_: &[String]) {
    let gpu = Gpu::new();
    let stream = &gpu.stream;
    let [spin, in_hold, ahead] =
        ["delayed", "held", "ahead"].map(|name| gpu.spin(&format!("fed::{name}")));
    for _ in 0..200 {
        held(stream, &in_hold).unwrap();
        gpu.synchronize();
    }
    let snapshot = gpu_time::snapshot();
    let site = snapshot.sites.iter().find(|site| site.name == "scenario::fed::held");
    let row = site.and_then(|site| site.series.first()).expect("it was called");
    let held_ns = row.raw_ns.expect("there are samples");
    // The 95th percentile rather than the median: on some GPUs the event constant alternates
    // between two values 0.2 µs apart.
    let truth_ns = held_ns.p95;
    tally::fact("held_starved", row.starved);
    tally::fact("held_off_ns", (held_ns.max - truth_ns) as u64);
    let mut random = fastrand::Rng::with_seed(1);
    let mut totals = Totals::default();
    let (mut off, mut off_and_fed, mut fed, mut right) = (0u64, 0u64, 0u64, 0u64);
    let mut worst_ns = 0.0f64;
    for call in 0..CALLS {
        let mut delay = || if random.bool() { 0 } else { random.u64(..50_000) };
        let inside = [delay(), delay()];
        let head_start = random.u64(..60_000);
        if call % 4 > 0 {
            ahead.launch(stream, head_start).unwrap();
        }
        delayed(stream, &spin, inside).unwrap();
        gpu.synchronize();
        // The host sees completion slightly late.
        pass(20_000);
        let now = Totals::of("scenario::fed::delayed");
        assert_eq!(now.measured, totals.measured + 1);
        let raw_ns = now.sum_ns - totals.sum_ns;
        let is_fed = now.fed > totals.fed;
        let is_off = raw_ns > truth_ns + OFF_NS;
        if is_off && is_fed {
            worst_ns = worst_ns.max(raw_ns - truth_ns);
        }
        off += u64::from(is_off);
        off_and_fed += u64::from(is_off && is_fed);
        right += u64::from(!is_off);
        fed += u64::from(is_fed);
        totals = now;
    }
    for (name, count) in
        [("off", off), ("off_and_fed", off_and_fed), ("fed", fed), ("right", right)]
    {
        tally::fact(name, count);
    }
    tally::fact("worst_ns", worst_ns as u64);
    tally::print();
}

/// Runs loops that never wait for the GPU, without and with holds.
fn queue(_: &[String]) {
    let gpu = Gpu::new();
    let [spin, in_hold, ahead] =
        ["queued", "held", "ahead"].map(|name| gpu.spin(&format!("fed::{name}")));
    let calls: [&dyn Fn() -> LaunchResult; 2] =
        [&|| queued(&gpu.stream, &spin), &|| held(&gpu.stream, &in_hold)];
    for call in calls {
        // The first calls load the kernels, which must not happen in the loop below.
        for _ in 0..10 {
            call().unwrap();
        }
        gpu.synchronize();
        // On a slow host, the GPU would keep up.
        ahead.launch(&gpu.stream, 40_000_000).unwrap();
        // The queue is full after about a thousand calls. From then on, the host may block for a
        // while.
        for _ in 0..4_000 {
            call().unwrap();
        }
        gpu.synchronize();
    }
    tally::print();
}

/// Launches a kernel, then opens another bracket.
#[gpu_timed(scope = "body")]
fn outer(stream: &Arc<CudaStream>, spin: &Spin, inner: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 300_000)?;
    queued(stream, inner)
}

/// Delays the host inside the bracket.
#[gpu_timed(scope = "body")]
fn alone(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    pass(30_000);
    spin.launch(stream, KERNEL_NS)
}

/// Makes nested brackets, each pair followed by a single bracket, on an idle GPU.
fn nested(_: &[String]) {
    let gpu = Gpu::new();
    let [spin, inner, single] =
        ["outer", "queued", "alone"].map(|name| gpu.spin(&format!("fed::{name}")));
    for _ in 0..40 {
        outer(&gpu.stream, &spin, &inner).unwrap();
        gpu.synchronize();
        alone(&gpu.stream, &single).unwrap();
        gpu.synchronize();
    }
    tally::print();
}
