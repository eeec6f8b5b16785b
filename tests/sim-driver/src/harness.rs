//! Setup for tests that run a child process with the simulated driver.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf;
use crate::library_file;
use crate::trace::Trace;

const LIBRARY: &str = "libgpu_time_sim_driver.so";
const TRACE: &str = "trace.jsonl";

/// A simulated driver installed in its own directory, with the environment for a child process.
#[derive(Clone, Debug)]
pub struct SimDriver {
    dir: PathBuf,
    env: Vec<(&'static str, OsString)>,
}

impl SimDriver {
    /// Creates `dir` and copies the library into it as `libcuda.so.1`, with a link `libcuda.so`.
    /// Both names refer to one file, so a process that loads both gets a single driver.
    pub fn install(dir: impl AsRef<Path>) -> io::Result<Self> {
        Self::install_without(dir, &[])
    }

    /// Like [`SimDriver::install`], but for a driver that lacks the functions in `absent`.
    pub fn install_without(dir: impl AsRef<Path>, absent: &[&str]) -> io::Result<Self> {
        let dir = dir.as_ref().to_path_buf();
        std::fs::create_dir_all(&dir)?;
        let mut image =
            std::fs::read(library_file::find_or_build(LIBRARY, env!("CARGO_MANIFEST_DIR"))?)?;
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

    /// Returns the library's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sets the number of devices. The default is 1.
    pub fn devices(self, n: usize) -> Self {
        self.with("GPU_TIME_TEST_SIM_DEVICES", n.to_string())
    }

    /// Overrides model constants: `key=value,…`.
    pub fn model(self, text: &str) -> Self {
        self.with("GPU_TIME_TEST_SIM_MODEL", text)
    }

    /// Scripts failures: `function:n=code;…`.
    pub fn faults(self, text: &str) -> Self {
        self.with("GPU_TIME_TEST_SIM_FAULTS", text)
    }

    /// Writes a trace of all calls and commands, for [`SimDriver::trace`].
    pub fn traced(self) -> Self {
        let path = self.dir.join(TRACE);
        self.with("GPU_TIME_TEST_SIM_TRACE", path)
    }

    /// Omits calls from the trace.
    pub fn commands_only(self) -> Self {
        self.with("GPU_TIME_TEST_SIM_TRACE_LEVEL", "device")
    }

    /// Sets a variable in the child's environment.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.into()));
        self
    }

    /// Sets up `command`'s environment to load this driver, and removes variables that configure
    /// the real one.
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

    /// Reads the trace written so far. It is empty if no driver function was called.
    pub fn trace(&self) -> io::Result<Trace> {
        match Trace::read(&self.dir.join(TRACE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trace::default()),
            other => other,
        }
    }
}
