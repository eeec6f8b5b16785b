//! The host cost of a timed call, compared with events recorded without gpu-time.
//!
//! ```text
//! cargo bench --bench overhead
//! ```
//!
//! Prints one table and fails if a bound is missed. A batch has at most 200 calls, and the GPU is
//! synchronized between batches, outside the timed part: with a full queue, every call would wait
//! for the GPU, which would hide the cost of the call itself. The calls in a batch read the results
//! of the previous one. Row labels are compared between builds, so they must not change.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc; events are recorded by hand

mod allocations;
mod gpu;
mod idle;
mod table;

use table::Table;

fn main() {
    // SAFETY: no other thread is running yet.
    unsafe {
        std::env::set_var("GPU_TIME_FILTER", "!bench::filtered_out");
        std::env::set_var("GPU_TIME_REPORT", "none");
    }
    // Arguments, such as cargo's `--bench`, are ignored.
    let mut table = Table::default();
    idle::run(&mut table);
    match gpu::Gpu::new() {
        Ok(gpu) => gpu::run(&gpu, &mut table),
        Err(why) => println!("no GPU here ({why}): rows that need one are missing"),
    }
    print!("{table}");
    if table.has_missed() {
        std::process::exit(1);
    }
}
