//! Prints what each way to evict the L2 takes on this machine, and what it leaves.
//!
//! ```text
//! cargo run --release -p gpu-time-accuracy --bin flush-methods
//! ```
//!
//! Needs an NVIDIA GPU and the `libcupti` of a CUDA toolkit; what is dirty only `ncu` can say.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::flush_methods()
}
