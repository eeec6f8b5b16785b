//! A plugin that shares the runtime of its program.
#![allow(unsafe_code)] // the exported symbol

use gpu_time_shared::gpu_time;
use gpu_time_shared::gpu_time::gpu_timed;

#[gpu_timed(clock = "host", crate = gpu_time)]
fn sharing() {}

/// Calls the annotated function once.
#[unsafe(no_mangle)]
pub extern "C" fn call() {
    sharing();
}
