//! CUPTI's duration for an empty kernel on each GPU. `gpu-time calibrate`, or the first run that needs it, stores
//! it in the user's cache directory.

use std::fs::DirBuilder;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::environment;
use crate::config::report_file::write_file;
use crate::stats::bias::KernelBase;

/// The maximum number of bytes to read.
const MAX_BYTES: u64 = 1 << 20;
/// The maximum number of entries to write. The oldest entries are dropped.
const MAX_ENTRIES: usize = 256;
/// The longest plausible time. An H200 takes half a microsecond.
const LONGEST_NS: f64 = 100_000.0;

/// A GPU with its driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GpuIdentity {
    pub name: String,
    /// Compute capability, such as `9.0`.
    pub capability: String,
    /// Unknown with old drivers.
    pub uuid: Option<String>,
    pub driver: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredBase {
    #[serde(flatten)]
    gpu: GpuIdentity,
    cupti_version: u32,
    empty_kernel_ns: f64,
    error_ns: f64,
}

/// The contents of the file.
///
/// Invariant: all times are plausible. `add` keeps one entry for each GPU, driver and version of CUPTI.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KernelBases {
    /// The oldest first.
    gpus: Vec<StoredBase>,
}

/// Returns the path of the file, or `None` without a cache directory and in set-user-ID programs.
pub(crate) fn path() -> Option<PathBuf> {
    path_of(|name| environment::var(name).map(PathBuf::from))
}

fn path_of(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths.
    let absolute = |name| var(name).filter(|path| path.is_absolute());
    let home = || Some(absolute("HOME")?.join(".cache"));
    Some(absolute("XDG_CACHE_HOME").or_else(home)?.join("gpu-time/calibration.json"))
}

impl KernelBases {
    /// Reads the file. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// A short reason why the file cannot be used.
    pub fn read(path: &Path) -> Result<Option<KernelBases>, String> {
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        match file.and_then(|file| Ok((file.metadata()?, file))) {
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(error.to_string()),
            },
            Ok((status, _)) if !status.is_file() => Err("not a file".to_owned()),
            Ok((_, file)) => {
                let mut text = String::new();
                let read = file.take(MAX_BYTES).read_to_string(&mut text);
                read.map_err(|error| error.to_string())?;
                KernelBases::parse(&text).map(Some)
            }
        }
    }

    fn parse(text: &str) -> Result<KernelBases, String> {
        let bases: KernelBases =
            serde_json::from_str(text).map_err(|error| format!("invalid: {error}"))?;
        let is_plausible = |entry: &StoredBase| {
            (1.0..=LONGEST_NS).contains(&entry.empty_kernel_ns)
                && (0.0..=LONGEST_NS).contains(&entry.error_ns)
        };
        match bases.gpus.iter().find(|entry| !is_plausible(entry)) {
            Some(StoredBase { empty_kernel_ns: ns, error_ns, .. }) => {
                Err(format!("invalid time of an empty kernel, {ns} ± {error_ns} ns"))
            }
            None => Ok(bases),
        }
    }

    /// Returns the duration on a GPU with its driver, as measured by the newest version of CUPTI.
    pub fn find(&self, gpu: &GpuIdentity) -> Option<KernelBase> {
        let entries = self.gpus.iter().filter(|entry| entry.gpu == *gpu);
        let newest = entries.max_by_key(|entry| entry.cupti_version)?;
        Some(KernelBase { ns: newest.empty_kernel_ns, error_ns: newest.error_ns })
    }

    /// Adds the duration on a GPU. Replaces an earlier one with the same driver and version of
    /// CUPTI.
    pub fn add(&mut self, gpu: GpuIdentity, cupti_version: u32, base: KernelBase) {
        let is_old = |old: &StoredBase| (&old.gpu, old.cupti_version) == (&gpu, cupti_version);
        self.gpus.retain(|old| !is_old(old));
        let KernelBase { ns: empty_kernel_ns, error_ns } = base;
        self.gpus.push(StoredBase { gpu, cupti_version, empty_kernel_ns, error_ns });
        self.gpus.drain(..self.gpus.len().saturating_sub(MAX_ENTRIES));
    }

    /// Writes the file, and creates its directory if it is missing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        write_file(path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const BASE: KernelBase = KernelBase { ns: 545.0, error_ns: 32.0 };

    fn gpu(uuid: &str, driver: &str) -> GpuIdentity {
        let [name, capability, driver] = ["NVIDIA H200", "9.0", driver].map(str::to_owned);
        GpuIdentity { name, capability, uuid: Some(uuid.to_owned()), driver }
    }

    fn stored(entries: &[(GpuIdentity, u32, f64)]) -> KernelBases {
        let mut bases = KernelBases::default();
        for (gpu, cupti_version, ns) in entries {
            bases.add(gpu.clone(), *cupti_version, KernelBase { ns: *ns, ..BASE });
        }
        bases
    }

    #[test]
    fn written_file_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gpu-time/calibration.json");
        assert_eq!(KernelBases::read(&path), Ok(None));
        let bases = stored(&[(gpu("a", "13.0"), 130_000, 545.1), (gpu("b", "13.0"), 22, 609.0)]);
        for _ in 0..2 {
            bases.write(&path).unwrap();
            assert_eq!(KernelBases::read(&path), Ok(Some(bases.clone())));
        }
        let directory = fs::metadata(path.parent().unwrap()).unwrap();
        assert_eq!(directory.permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn same_gpu_driver_and_cupti_have_one_entry() {
        let one = gpu("a", "13.0");
        let bases = stored(&[
            (one.clone(), 130_200, 500.0),
            (one.clone(), 28, 600.0),
            (one.clone(), 130_200, 545.0),
        ]);
        assert_eq!(bases.gpus.len(), 2);
        assert_eq!(bases.find(&one), Some(BASE), "the newest version of CUPTI wins");
        let many: Vec<_> = (0..300).map(|n| (gpu("a", &n.to_string()), 28, 545.0)).collect();
        let bases = stored(&many);
        assert_eq!(bases.gpus.len(), MAX_ENTRIES);
        assert!(bases.find(&gpu("a", "299")).is_some() && bases.find(&gpu("a", "43")).is_none());
    }

    #[test]
    fn other_gpu_or_driver_has_no_duration() {
        let bases = stored(&[(gpu("a", "13.0"), 130_000, 545.0)]);
        assert_eq!(bases.find(&gpu("a", "13.0")), Some(BASE));
        let named = GpuIdentity { name: "NVIDIA H100".to_owned(), ..gpu("a", "13.0") };
        let unknown = GpuIdentity { uuid: None, ..gpu("a", "13.0") };
        for other in [gpu("a", "13.1"), gpu("b", "13.0"), named, unknown] {
            assert_eq!(bases.find(&other), None, "{other:?}");
        }
    }

    #[test]
    fn corrupt_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        let refusal = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            KernelBases::read(&path).unwrap_err()
        };
        let good = serde_json::to_string(&stored(&[(gpu("a", "13.0"), 130_000, 545.0)])).unwrap();
        assert!(refusal(b"").starts_with("invalid: EOF"));
        assert!(refusal(&good.as_bytes()[..good.len() / 2]).starts_with("invalid: "));
        assert!(refusal(b"\xff\xfe").contains("UTF-8"));
        for ns in ["-545.0", "0.0", "1e9"] {
            let why = refusal(good.replace("545.0", ns).as_bytes());
            assert!(why.starts_with("invalid time "), "{why}");
        }
        assert!(refusal(&vec![b' '; 2 * MAX_BYTES as usize]).starts_with("invalid: EOF"));
    }

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new("/dev/null")] {
            assert_eq!(KernelBases::read(path), Err("not a file".to_owned()));
        }
    }

    #[test]
    fn unwritable_directory_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gpu-time"), "").unwrap();
        let path = folder.path().join("gpu-time/calibration.json");
        assert!(stored(&[]).write(&path).is_err());
        assert_eq!(KernelBases::read(&path), Ok(None));
    }

    #[test]
    fn cache_directory_follows_xdg() {
        let path = |xdg: Option<&str>, home: Option<&str>| {
            path_of(|name| if name == "HOME" { home } else { xdg }.map(PathBuf::from))
        };
        let expected = |text: &str| Some(PathBuf::from(text));
        let in_home = expected("/home/u/.cache/gpu-time/calibration.json");
        assert_eq!(path(Some("/c"), Some("/home/u")), expected("/c/gpu-time/calibration.json"));
        assert_eq!(path(None, Some("/home/u")), in_home);
        assert_eq!(path(Some(""), Some("/home/u")), in_home);
        assert_eq!(path(Some("relative"), Some("/home/u")), in_home);
        assert_eq!(path(None, Some("relative")), None);
        assert_eq!(path(None, None), None);
    }
}
