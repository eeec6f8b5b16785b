//! The bench `accuracy` as a program, for `gpu/bundle.sh` and for the tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_time_accuracy::main()
}
