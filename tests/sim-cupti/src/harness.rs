//! Setup for tests that run a child process with the stand-in.

use std::io;
use std::path::Path;
use std::process::Command;

use crate::elf;
use crate::library_file;
use crate::script::{Script, VARIABLE};
use crate::version::{self, Traits};

const LIBRARY: &str = "libgpu_time_sim_cupti.so";

/// The version of a CUDA toolkit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Older than any supported version.
    V10_2,
    /// The oldest supported version.
    V11_8,
    /// The first version with the second record layout.
    V12_4,
    /// The default.
    V13_0,
    /// The first version in which several clients can subscribe.
    V13_2,
    /// The newest version whose layouts are known.
    V13_5,
    /// Newer than any supported version.
    V99,
}

impl Version {
    fn traits(self) -> &'static Traits {
        let toolkit = match self {
            Self::V10_2 => "10.2",
            Self::V11_8 => "11.8",
            Self::V12_4 => "12.4",
            Self::V13_0 => "13.0",
            Self::V13_2 => "13.2",
            Self::V13_5 => "13.5",
            Self::V99 => "99.0",
        };
        Traits::of(toolkit).expect("the version is known")
    }

    /// Returns the result of `cuptiGetVersion`.
    pub fn number(self) -> u32 {
        self.traits().number
    }

    /// Returns the file name of the library.
    pub fn file(self) -> &'static str {
        self.traits().file
    }
}

/// A stand-in to install, with its script.
#[derive(Clone, Debug)]
pub struct SimCupti {
    version: Version,
    script: String,
    absent: Vec<&'static str>,
}

impl Default for SimCupti {
    fn default() -> Self {
        Self::new(Version::V13_0)
    }
}

impl SimCupti {
    /// Creates a stand-in for this version, without faults.
    pub fn new(version: Version) -> Self {
        Self { version, script: String::new(), absent: Vec::new() }
    }

    /// Scripts faults: `key=value,…`.
    #[must_use]
    pub fn script(mut self, text: &str) -> Self {
        if let Err(error) = Script::parse(text) {
            panic!("{error}");
        }
        self.script = text.to_owned();
        self
    }

    /// Removes an exported function.
    #[must_use]
    pub fn without(mut self, symbol: &'static str) -> Self {
        self.absent.push(symbol);
        self
    }

    /// Writes the library into a folder, under the name that it has in this version's toolkit.
    pub fn install(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let built = library_file::find_or_build(LIBRARY, env!("CARGO_MANIFEST_DIR"))?;
        let mut image = std::fs::read(built)?;
        let traits = self.version.traits();
        let absent: Vec<&str> = self.absent.iter().chain(traits.lacks).copied().collect();
        elf::remove_symbols(&mut image, &absent)?;
        version::choose(&mut image, traits.toolkit);
        let library = dir.join(traits.file);
        // Removes an earlier copy instead of overwriting it, because a process may have loaded that file.
        match std::fs::remove_file(&library) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::write(library, image)
    }

    /// Sets up `command`'s environment to find the library in `dir`, and passes it the script.
    pub fn apply<'c>(&self, dir: &Path, command: &'c mut Command) -> &'c mut Command {
        const PATH: &str = "LD_LIBRARY_PATH";
        let set = command.get_envs().find(|(name, _)| *name == PATH);
        let known = set.map_or_else(|| std::env::var_os(PATH), |(_, value)| value.map(Into::into));
        let mut path = known.unwrap_or_default();
        if !path.is_empty() {
            path.push(":");
        }
        path.push(dir);
        let (name, script) = self.variable();
        command.env(PATH, path).env(name, script)
    }

    /// Returns a name for the installed library. It does not depend on the script.
    pub fn name(&self) -> String {
        let absent: String =
            self.absent.iter().map(|symbol| format!("-without-{symbol}")).collect();
        format!("cupti-{}{absent}", self.version.traits().toolkit)
    }

    /// Returns the variable that passes the script to a process, and its value.
    pub fn variable(&self) -> (&'static str, String) {
        (VARIABLE, self.script.clone())
    }
}
