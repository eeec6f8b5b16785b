//! Setup for tests that run a child process with the simulated NVML.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::library_file;
use crate::script::{SCRIPT_VARIABLE, Script, TRACE_VARIABLE};

const LIBRARY: &str = "libgpu_time_sim_nvml.so";
const NAME: &str = "libnvidia-ml.so.1";

/// A simulated NVML with its script.
#[derive(Clone, Debug)]
pub struct SimNvml {
    script: Script,
}

impl SimNvml {
    /// Copies the library into `dir`, under NVML's file name.
    pub fn install(dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let library = dir.join(NAME);
        match std::fs::remove_file(&library) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let built = library_file::find_or_build(LIBRARY, env!("CARGO_MANIFEST_DIR"))?;
        std::fs::copy(built, library).map(drop)
    }

    /// Creates a file with NVML's name that is not a library.
    pub fn install_broken(dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        std::fs::write(dir.join(NAME), "not a library")
    }

    /// Creates a simulation with this script.
    pub fn new(script: Script) -> SimNvml {
        SimNvml { script }
    }

    /// Passes the script to `command`, which must find the library through its library path. The
    /// library appends locks and unlocks of clocks, and hanging calls, to the file `trace`.
    pub fn apply<'c>(&self, command: &'c mut Command, trace: &Path) -> &'c mut Command {
        let script = serde_json::to_string(&self.script).expect("a script always serializes");
        command.env(SCRIPT_VARIABLE, script).env(TRACE_VARIABLE, trace)
    }
}
