//! What a test needs to let a child process find the stand-in.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::library_file;
use crate::script::{Script, VARIABLE};

const LIBRARY: &str = "libgpu_time_sim_nvml.so";
const NAME: &str = "libnvidia-ml.so.1";
/// The variable that names the file of the trace.
pub(crate) const TRACE: &str = "GPU_TIME_TEST_SIM_NVML_TRACE";

/// A stand-in with its script.
#[derive(Clone, Debug)]
pub struct SimNvml {
    script: Script,
}

impl SimNvml {
    /// Copies the library into `dir`, under the name by which NVML is loaded.
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

    /// Puts a file there that is no library.
    pub fn install_broken(dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        std::fs::write(dir.join(NAME), "not a library")
    }

    /// A stand-in that answers like this.
    pub fn new(script: Script) -> SimNvml {
        SimNvml { script }
    }

    /// Scripts it for `command`, which must find it by its library path. What is locked and given
    /// back is appended to `trace`.
    pub fn apply<'c>(&self, command: &'c mut Command, trace: &Path) -> &'c mut Command {
        let script = serde_json::to_string(&self.script).expect("plain data");
        command.env(VARIABLE, script).env(TRACE, trace)
    }
}
