//! What a test needs to run a child process under the simulated driver.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built;
use crate::elf;
use crate::trace::Trace;

const LIBRARY: &str = "libgpu_time_sim_driver.so";
const TRACE: &str = "trace.jsonl";

/// A simulated driver in a directory of its own, and the environment that a child needs to find it.
#[derive(Clone, Debug)]
pub struct SimDriver {
    dir: PathBuf,
    env: Vec<(&'static str, OsString)>,
}

impl SimDriver {
    /// Copies the library into `dir`, which is created, as `libcuda.so.1` with the link
    /// `libcuda.so`: one file under both names, so that a process which loads both gets one driver.
    pub fn install(dir: impl AsRef<Path>) -> io::Result<Self> {
        Self::install_without(dir, &[])
    }

    /// The same with a driver that lacks some functions.
    pub fn install_without(dir: impl AsRef<Path>, absent: &[&str]) -> io::Result<Self> {
        let dir = dir.as_ref().to_path_buf();
        std::fs::create_dir_all(&dir)?;
        let mut image = std::fs::read(built::library(LIBRARY, env!("CARGO_MANIFEST_DIR"))?)?;
        elf::remove_symbols(&mut image, absent)?;
        let (library, link) = (dir.join("libcuda.so.1"), dir.join("libcuda.so"));
        for stale in [&library, &link, &dir.join(TRACE)] {
            match std::fs::remove_file(stale) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::write(&library, image)?;
        std::os::unix::fs::symlink("libcuda.so.1", link)?;
        Ok(Self { dir, env: vec![("GPU_TIME_TEST_SIM", "1".into())] })
    }

    /// The directory with the library.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many devices there are: one unless said otherwise.
    pub fn devices(self, n: usize) -> Self {
        self.with("GPU_TIME_TEST_SIM_DEVICES", n.to_string())
    }

    /// Other numbers for the model: `key=value,…`.
    pub fn model(self, text: &str) -> Self {
        self.with("GPU_TIME_TEST_SIM_MODEL", text)
    }

    /// Scripted failures: `function:n=code;…`.
    pub fn faults(self, text: &str) -> Self {
        self.with("GPU_TIME_TEST_SIM_FAULTS", text)
    }

    /// Writes a trace of all calls and commands, for [`SimDriver::trace`].
    pub fn traced(self) -> Self {
        let path = self.dir.join(TRACE);
        self.with("GPU_TIME_TEST_SIM_TRACE", path)
    }

    /// Leaves the calls out of the trace.
    pub fn commands_only(self) -> Self {
        self.with("GPU_TIME_TEST_SIM_TRACE_LEVEL", "device")
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
        self
    }

    /// Lets `command` run under this driver, without what the environment says of real devices.
    pub fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let mut path = OsString::from(&self.dir);
        if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        for name in ["CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING"] {
            command.env_remove(name);
        }
        command.env("LD_LIBRARY_PATH", path).envs(self.env.iter().map(|(k, v)| (k, v)))
    }

    /// What happened so far. A driver that was never called has written nothing.
    pub fn trace(&self) -> io::Result<Trace> {
        match Trace::read(self.dir.join(TRACE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trace::default()),
            other => other,
        }
    }
}
