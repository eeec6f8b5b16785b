//! Writing to where the user wants it.

use std::io::{self, Write};
use std::path::Path;

use gpu_time_report::printable;
use gpu_time_runtime::write_file;

use crate::Failure;

/// Writes a text to a file, or to stdout.
pub fn write(to: Option<&Path>, text: &str) -> Result<(), Failure> {
    write_bytes(to, text.as_bytes())
}

/// Writes bytes to a file, or to stdout. What stood in the file stays until all of it is written.
pub fn write_bytes(to: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let Some(path) = to else {
        let mut stdout = io::stdout().lock();
        return match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            // Its reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("stdout cannot be written: {error}")),
        };
    };
    write_file(path, bytes)
        .map_err(|error| format!("`{}` cannot be written: {error}", path.display()))
}

/// Says in one line on stderr what is wrong.
pub fn complain(what: &str) {
    // What stderr does not take cannot be said anywhere.
    _ = writeln!(io::stderr(), "gpu-time: {}", printable(what));
}
