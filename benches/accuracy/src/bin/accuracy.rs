//! The `accuracy` bench as a program, for `gpu/bundle.sh` and for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
