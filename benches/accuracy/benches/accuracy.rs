//! Compares gpu-time's medians with CUPTI's for the same kernels, in one table.
//!
//! ```text
//! cargo bench -p gpu-time-accuracy
//! ```
//!
//! Needs an NVIDIA GPU and `libcupti` from a CUDA toolkit. The code is in this package's library.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
