//! What a timed call costs the host, beside what one would write by hand.
//!
//! ```text
//! cargo bench --bench overhead
//! ```
//!
//! Prints one table and fails where a bound is missed. A batch is at most 200 calls, and the GPU is
//! drained between batches, outside the timed part: behind a full queue every call waits for the GPU,
//! which would hide what the call itself costs. Calls of a batch harvest what the batch before left.

#![allow(unsafe_code)] // launching a kernel is unsafe in cudarc; events are recorded by hand

mod allocations;
mod gpu;
mod idle;
mod table;

use table::Table;

fn main() {
    // SAFETY: no other thread runs yet.
    unsafe {
        std::env::set_var("GPU_TIME_FILTER", "!bench::filtered_out");
        std::env::set_var("GPU_TIME_REPORT", "none");
    }
    // cargo passes `--bench`, and its test runner other flags: there is nothing to choose here.
    let mut table = Table::default();
    idle::run(&mut table);
    match gpu::Gpu::new() {
        Ok(gpu) => gpu::run(&gpu, &mut table),
        Err(why) => println!("no GPU here ({why}): only what needs none was timed"),
    }
    print!("{table}");
    if table.has_missed() {
        std::process::exit(1);
    }
}
