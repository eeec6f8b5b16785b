//! Prints which functions of CUPTI and of the driver wait for each other for ever on this machine.
//!
//! ```text
//! cargo run --release -p gpu-time-accuracy --bin cupti-locks
//! ```
//!
//! Needs an NVIDIA GPU and `libcupti` from a CUDA toolkit.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::locks()
}
