//! What `cargo bench --bench accuracy` runs, as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
