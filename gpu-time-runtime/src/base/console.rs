//! The runtime's messages on stderr, and the configuration errors that the report repeats.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::outlet;
use crate::base::standard::Standard;

/// Configuration errors, for the report's warnings.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Rank::Complaints, Vec::new());
/// Upper bound on [`COMPLAINTS`], for programs that reconfigure in a loop.
const MAX_COMPLAINTS: usize = 100;

/// Writes one line to stderr, prefixed with the library's name.
pub(crate) fn say(line: &str) {
    // If stderr cannot be written, there is nowhere to report that.
    let _ = print(Standard::Stderr, format!("gpu-time: {line}\n").as_bytes());
}

/// Writes to a standard stream.
///
/// # Errors
///
/// An error if the write fails, or if nothing reads the stream in time. After a timeout, later writes fail
/// without waiting, until the reader reads again.
pub(crate) fn print(to: Standard, bytes: &[u8]) -> io::Result<()> {
    static IS_STUCK: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    let is_stuck = IS_STUCK.get(to as usize);
    let has_waited = is_stuck.is_some_and(|is_stuck| is_stuck.load(Relaxed));
    let patience = if has_waited { Duration::ZERO } else { outlet::PATIENCE };
    let printed = outlet::write_all(to.descriptor()?, bytes, patience);
    if let Some(is_stuck) = is_stuck {
        let timed_out = |error: &io::Error| error.kind() == ErrorKind::TimedOut;
        is_stuck.store(printed.as_ref().is_err_and(timed_out), Relaxed);
    }
    printed
}

/// Prints a configuration error and keeps it for the report.
pub(crate) fn complain(complaint: String) {
    say(&complaint);
    let mut complaints = locked(&COMPLAINTS);
    if complaints.len() < MAX_COMPLAINTS && !complaints.contains(&complaint) {
        complaints.push(complaint);
    }
}

/// Does the same, unless it is known already, or there is no room to remember it.
pub(crate) fn complain_once(complaint: String) {
    let complaints = locked(&COMPLAINTS);
    let is_new = complaints.len() < MAX_COMPLAINTS && !complaints.contains(&complaint);
    drop(complaints);
    if is_new {
        complain(complaint);
    }
}

/// Returns the configuration errors so far, at most [`MAX_COMPLAINTS`] of them.
pub(crate) fn complaints() -> Vec<String> {
    locked(&COMPLAINTS).clone()
}
