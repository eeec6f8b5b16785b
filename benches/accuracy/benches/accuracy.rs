//! Compares the medians of gpu-time with CUPTI's for the same kernels, in one table.
//!
//! ```text
//! cargo bench --bench accuracy
//! ```
//!
//! Needs an NVIDIA GPU and the `libcupti` of a CUDA toolkit. The code is in the library of this
//! package.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
