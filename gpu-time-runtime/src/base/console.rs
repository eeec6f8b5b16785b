//! Lines of the runtime's own on stderr, and the configuration errors that the report repeats.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use crate::base::lock::{Mutex, Rank, locked};

/// Configuration errors, for the report's warnings.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Rank::Complaints, Vec::new());
/// Upper bound on [`COMPLAINTS`], for programs that reconfigure in a loop.
const MAX_COMPLAINTS: usize = 100;

/// Writes one line to stderr, prefixed with the library's name.
pub(crate) fn say(line: &str) {
    // There is no other place to report that stderr cannot be written.
    let _ = unlocked(io::stderr())
        .and_then(|mut stderr| stderr.write_all(format!("gpu-time: {line}\n").as_bytes()));
}

/// A duplicate of a standard stream that bypasses the lock of `std`, which another thread may hold
/// for ever while the process is about to end.
pub(crate) fn unlocked(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

/// Prints a configuration error and keeps it for the report.
pub(crate) fn complain(complaint: String) {
    say(&complaint);
    let mut complaints = locked(&COMPLAINTS);
    if complaints.len() < MAX_COMPLAINTS && !complaints.contains(&complaint) {
        complaints.push(complaint);
    }
}

/// Every configuration error so far.
pub(crate) fn complaints() -> Vec<String> {
    locked(&COMPLAINTS).clone()
}
