//! A plugin with a runtime of its own.
#![allow(unsafe_code)] // the exported symbol

use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
fn alone() {}

/// Calls the annotated function once.
#[unsafe(no_mangle)]
pub extern "C" fn call() {
    alone();
}
