//! The cost of calls that are never or rarely timed, relative to the plain function.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use gpu_time::gpu_timed;

use crate::table::{Bound, Figure, Table};

const CALLS: u32 = 2_000_000;
const REPETITIONS: usize = 21;
const THREADS: usize = 8;

#[inline(never)]
fn plain(x: u64) -> u64 {
    black_box(x)
}

#[gpu_timed(clock = "host")]
#[inline(never)]
fn switched(x: u64) -> u64 {
    black_box(x)
}

#[gpu_timed(clock = "host", name = "bench::filtered_out")]
#[inline(never)]
fn filtered(x: u64) -> u64 {
    black_box(x)
}

#[gpu_timed(clock = "host", sample = 0.001)]
#[inline(never)]
fn sampled(x: u64) -> u64 {
    black_box(x)
}

/// Returns the mean nanoseconds per call with `threads` concurrent threads.
fn ns_per_call_on(threads: usize, call: fn(u64) -> u64) -> f64 {
    let barrier = Barrier::new(threads);
    let sum: f64 = thread::scope(|scope| {
        let run = || {
            barrier.wait();
            ns_per_call(call)
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().expect("join a thread")).sum()
    });
    sum / threads as f64
}

/// Measures `call` minus the plain function, both on `threads` threads, in alternating repetitions.
fn over_plain_on(threads: usize, call: fn(u64) -> u64) -> Figure {
    let difference = |_| {
        let plain = ns_per_call_on(threads, plain);
        ns_per_call_on(threads, call) - plain
    };
    Figure::of((0..REPETITIONS).map(difference).collect())
}

/// Returns the mean nanoseconds per call.
fn ns_per_call(mut call: impl FnMut(u64) -> u64) -> f64 {
    let start = Instant::now();
    for i in 0..CALLS {
        black_box(call(u64::from(i)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// Measures `call` minus the plain function, in alternating repetitions.
pub fn over_plain(mut call: impl FnMut(u64) -> u64) -> Figure {
    let difference = |_| {
        let plain = ns_per_call(plain);
        ns_per_call(&mut call) - plain
    };
    Figure::of((0..REPETITIONS).map(difference).collect())
}

/// The time that the processor needs to ramp up to its normal clock under load.
const RAMP: Duration = Duration::from_millis(500);

pub fn run(table: &mut Table) {
    let started = Instant::now();
    while started.elapsed() < RAMP {
        ns_per_call(plain);
    }
    table.row(
        "plain call",
        Figure::of((0..REPETITIONS).map(|_| ns_per_call(plain)).collect()),
        "ns",
        Bound::None,
    );
    gpu_time::set_enabled(false);
    table.row("switched off, over plain", over_plain(switched), "ns", Bound::AtMost(2.0));
    gpu_time::set_enabled(true);
    table.row("filtered out, over plain", over_plain(filtered), "ns", Bound::AtMost(2.0));
    let (single, parallel) = (over_plain(sampled), over_plain_on(THREADS, sampled));
    table.row("not sampled (sample = 0.001), over plain", single, "ns", Bound::AtMost(4.0));
    table.row("the same on 8 threads at once", parallel, "ns", Bound::AtMost(6.0));
}
