//! Setup for tests that run a child process with the stand-in.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::VARIABLE;
use crate::library_file;

const LIBRARY: &str = "libgpu_time_sim_nvtx.so";
const INJECTION: &str = "NVTX_INJECTION64_PATH";

/// The stand-in, for a child process.
#[derive(Clone, Copy, Debug)]
pub struct SimNvtx;

impl SimNvtx {
    /// Returns the path of the library.
    pub fn library() -> io::Result<PathBuf> {
        library_file::find_or_build(LIBRARY, env!("CARGO_MANIFEST_DIR"))
    }

    /// Sets up `command` to load the library, which appends the ranges to the file `log`.
    pub fn apply<'c>(command: &'c mut Command, log: &Path) -> io::Result<&'c mut Command> {
        Ok(command.env(INJECTION, Self::library()?).env(VARIABLE, log))
    }
}

/// The beginning or the end of a range in the default domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub thread: u32,
    /// Name of the range that begins; `None` if the thread's innermost range ends.
    pub begins: Option<String>,
}

impl Event {
    /// Reads the file that the library wrote. Returns `None` if the library did not attach.
    ///
    /// # Panics
    ///
    /// Panics if a thread ended a range that it had not begun.
    pub fn read_all(log: &Path) -> Option<Vec<Event>> {
        let text = match std::fs::read_to_string(log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            text => text.expect("the file is readable"),
        };
        let event = |line| Event::parse(line).unwrap_or_else(|| panic!("`{line}`"));
        Some(text.lines().map(event).collect())
    }

    fn parse(line: &str) -> Option<Event> {
        let mut words = line.splitn(4, ' ');
        let (pid, thread) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let begins = match (words.next()?, words.next()?) {
            ("push", name) => Some(name.to_owned()),
            ("pop", depth) if depth.parse::<u32>().is_ok() => None,
            _ => return None,
        };
        Some(Event { pid, thread, begins })
    }
}
