//! Messages to the user on stderr, one line each.

use std::io::{self, Write};

use gpu_time_report::printable;

/// An error message: one line without the program's name.
pub type Failure = String;

/// The exit code for unusable input. clap exits with the same code for invalid arguments.
pub const UNUSABLE: u8 = 2;

/// Prints a message to stderr after the program's name, with control characters escaped.
pub fn print(message: &str) {
    // A failed write to stderr cannot be reported anywhere.
    _ = writeln!(io::stderr(), "gpu-time: {}", printable(message));
}
