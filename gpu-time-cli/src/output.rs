//! Writes results to a file or to stdout.

use std::io::{self, Write};
use std::path::Path;

use gpu_time_runtime::write_file;

use crate::message::Failure;

/// Writes text to a file, or to stdout if there is no path or it is `-`.
pub fn write(to: Option<&Path>, text: &str) -> Result<(), Failure> {
    write_bytes(to, text.as_bytes())
}

/// Returns `true` for the path that stands for stdout.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes bytes to a file, or to stdout if there is no path or it is `-`. A file is only replaced
/// after all of its new content has been written.
pub fn write_bytes(to: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    let Some(path) = to.filter(|path| !is_stdout(path)) else {
        let mut stdout = io::stdout().lock();
        return match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            // The reader, such as `head`, closed the pipe early.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("cannot write to stdout: {error}")),
        };
    };
    write_file(path, bytes).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}
