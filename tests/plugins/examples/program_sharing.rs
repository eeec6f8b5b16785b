//! `program_sharing PLUGIN…` loads, calls and unloads plugins that share its runtime.

use std::path::Path;

use gpu_time_plugins::load_call_unload;
use gpu_time_shared::gpu_time;
use gpu_time_shared::gpu_time::gpu_timed;

#[gpu_timed(clock = "host", crate = gpu_time)]
fn program() {}

fn main() {
    program();
    std::env::args_os().skip(1).for_each(|plugin| load_call_unload(Path::new(&plugin)));
}
