//! How far a median is from what CUPTI says of the same kernel, in one table.
//!
//! ```text
//! cargo bench --bench accuracy
//! ```
//!
//! Needs an NVIDIA GPU and the `libcupti` of a CUDA toolkit. All of it is in `accuracy/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
