//! Prints the duration of an empty kernel on this machine, as measured by CUPTI.
//!
//! ```text
//! cargo run --release -p gpu-time-accuracy --bin kernel-base
//! ```
//!
//! Needs an NVIDIA GPU and `libcupti` from a CUDA toolkit.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::kernel_base()
}
