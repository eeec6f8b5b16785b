//! Prints the duration of each way to flush the L2 on this machine, and the lines that remain
//! afterwards.
//!
//! ```text
//! cargo run --release -p gpu-time-accuracy --bin flush-methods
//! ```
//!
//! Needs an NVIDIA GPU and the `libcupti` of a CUDA toolkit. The column of dirty lines needs `ncu`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::flush_methods()
}
