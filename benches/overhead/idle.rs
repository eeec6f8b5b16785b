//! Calls that are not timed: what they cost over the plain function.

use std::hint::black_box;
use std::time::Instant;

use gpu_time::gpu_timed;

use crate::table::{Bound, Figure, Table};

const CALLS: u32 = 2_000_000;
const REPETITIONS: usize = 21;

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

/// Nanoseconds a call, in each repetition.
fn each(mut call: impl FnMut(u64) -> u64) -> f64 {
    let start = Instant::now();
    for i in 0..CALLS {
        black_box(call(u64::from(i)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// The figure of `call` less the plain function's, in pairs.
pub fn over_plain(mut call: impl FnMut(u64) -> u64) -> Figure {
    Figure::of(
        (0..REPETITIONS)
            .map(|_| {
                let plain = each(plain);
                each(&mut call) - plain
            })
            .collect(),
    )
}

pub fn run(table: &mut Table) {
    table.row(
        "plain call",
        Figure::of((0..REPETITIONS).map(|_| each(plain)).collect()),
        "ns",
        Bound::None,
    );
    gpu_time::set_enabled(false);
    table.row("switched off, over plain", over_plain(switched), "ns", Bound::AtMost(2.0));
    gpu_time::set_enabled(true);
    table.row("filtered out, over plain", over_plain(filtered), "ns", Bound::AtMost(2.0));
}
