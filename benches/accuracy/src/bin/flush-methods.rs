//! Prints the duration of each L2 flush method on this machine, and the lines that remain
//! afterwards.
//!
//! ```text
//! cargo run --release -p gpu-time-accuracy --bin flush-methods
//! ```
//!
//! Needs an NVIDIA GPU and `libcupti` from a CUDA toolkit. The column for dirty lines needs `ncu`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::flush_methods()
}
