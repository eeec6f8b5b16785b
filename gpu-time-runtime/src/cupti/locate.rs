//! The places where CUPTI may be installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable that names the library or its folder.
pub(super) const VARIABLE: &str = "GPU_TIME_CUPTI";

/// The library's file names, in order of preference.
pub(super) const NAMES: [&str; 4] =
    ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"];

/// The folders that may contain the library, relative to a toolkit, a conda environment or a wheel.
const TOOLKIT_FOLDERS: [&str; 4] = ["", "extras/CUPTI/lib64", "lib64", "lib"];

/// The file system and the environment that are searched.
pub(super) struct Search<'a> {
    /// Returns an environment variable, unless it is unset or blank.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// The root folder: `/`, except in tests.
    pub root: &'a Path,
}

impl Search<'_> {
    /// Returns the libraries that [`VARIABLE`] names, or `None` if it is not set. The list is empty if it
    /// names no existing library.
    pub fn named(&self) -> Option<Vec<PathBuf>> {
        let path = PathBuf::from((self.var)(VARIABLE)?);
        // The loader would search its own path for a name without a slash.
        let path = std::path::absolute(&path).unwrap_or(path);
        Some(if path.is_file() { vec![path] } else { libraries_of(&[path]) })
    }

    /// Returns the libraries in toolkits, conda environments and PyPI wheels, in the order in which
    /// to try them.
    pub fn installed(&self) -> Vec<PathBuf> {
        let mut found = libraries_of(&self.toolkits());
        for site in self.python_folders() {
            let nvidia = site.join("nvidia");
            let mut folders = vec![nvidia.join("cuda_cupti")];
            folders.extend(children(&nvidia, "cu1"));
            found.extend(libraries_of(&folders));
        }
        found
    }

    fn toolkits(&self) -> Vec<PathBuf> {
        let named = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| (self.var)(name));
        let mut roots: Vec<PathBuf> = named.map(PathBuf::from).collect();
        for folder in ["usr/local", "opt"] {
            roots.extend(children(&self.root.join(folder), "cuda"));
        }
        roots.extend((self.var)("CONDA_PREFIX").map(PathBuf::from));
        roots
    }

    /// Returns the folders into which Python packages are installed.
    fn python_folders(&self) -> Vec<PathBuf> {
        let of = |lib: &Path, packages: &str| -> Vec<PathBuf> {
            children(lib, "python3").into_iter().map(|python| python.join(packages)).collect()
        };
        let mut found = Vec::new();
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
            if let Some(prefix) = (self.var)(name) {
                found.extend(of(&Path::new(&prefix).join("lib"), "site-packages"));
            }
        }
        if let Some(home) = (self.var)("HOME") {
            found.extend(of(&Path::new(&home).join(".local/lib"), "site-packages"));
        }
        let local = self.root.join("usr/local/lib");
        found.extend(of(&local, "dist-packages"));
        found.extend(of(&local, "site-packages"));
        found.extend(of(&self.root.join("usr/lib"), "dist-packages"));
        found
    }
}

/// Returns the libraries in these toolkits, conda environments or wheels.
fn libraries_of(toolkits: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for toolkit in toolkits {
        let mut folders: Vec<PathBuf> = TOOLKIT_FOLDERS.iter().map(|f| toolkit.join(f)).collect();
        let targets = children(&toolkit.join("targets"), "");
        folders.extend(targets.into_iter().map(|target| target.join("lib")));
        for folder in folders {
            let files = NAMES.iter().map(|name| folder.join(name));
            found.extend(files.filter(|file| file.is_file()));
        }
    }
    found
}

/// Returns the entries of a folder whose names begin with `prefix`. A name without a version comes
/// first, then the highest version.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<(Vec<u32>, String)> = names
        .filter_map(|name| {
            let rest = name.strip_prefix(prefix)?;
            let numbers = rest.split(|c: char| !c.is_ascii_digit());
            let version = numbers.filter_map(|number| number.parse().ok()).collect();
            Some((version, name))
        })
        .collect();
    found.sort_by(|(one, a), (other, b)| {
        (one.is_empty(), one, b).cmp(&(other.is_empty(), other, a)).reverse()
    });
    found.into_iter().map(|(_, name)| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with empty files, which stands for `/`.
    struct Files(tempfile::TempDir);

    impl Files {
        fn new(files: &[&str]) -> Files {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                let path = root.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Files(root)
        }

        fn search<T>(&self, vars: &[(&str, &str)], run: impl FnOnce(&Search) -> T) -> T {
            let var = |name: &str| {
                let (_, path) = vars.iter().find(|(known, _)| *known == name)?;
                Some(self.0.path().join(path).into_os_string())
            };
            run(&Search { var: &var, root: self.0.path() })
        }

        fn relative(&self, paths: Vec<PathBuf>) -> Vec<String> {
            let relative = |path: PathBuf| {
                path.strip_prefix(self.0.path()).unwrap().to_str().unwrap().to_owned()
            };
            paths.into_iter().map(relative).collect()
        }

        fn named(&self, path: &str) -> Option<Vec<String>> {
            let found = self.search(&[(VARIABLE, path)], |search| search.named());
            found.map(|found| self.relative(found))
        }

        fn installed(&self, vars: &[(&str, &str)]) -> Vec<String> {
            self.relative(self.search(vars, |search| search.installed()))
        }
    }

    #[test]
    fn variable_names_a_file_or_a_folder() {
        let files =
            Files::new(&["a/cupti-13.so", "b/libcupti.so.12", "c/lib/libcupti.so.13", "d/x"]);
        assert_eq!(files.named("a/cupti-13.so").unwrap(), ["a/cupti-13.so"]);
        assert_eq!(files.named("b").unwrap(), ["b/libcupti.so.12"]);
        assert_eq!(files.named("c").unwrap(), ["c/lib/libcupti.so.13"]);
        assert_eq!(files.named("d").unwrap(), [""; 0]);
        assert_eq!(files.named("missing").unwrap(), [""; 0]);
        assert_eq!(files.search(&[], |search| search.named()), None);
    }

    #[test]
    fn toolkits_come_before_wheels() {
        let files = Files::new(&[
            "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13",
            "usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12",
            "usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib/libcupti.so.13",
            "venv/lib/python3.9/site-packages/nvidia/cuda_cupti/lib/libcupti.so.11.8",
            "usr/local/cuda/targets/x86_64-linux/lib/libcupti.so.12",
            "opt/cuda/extras/CUPTI/lib64/libcupti.so.13",
            "named/extras/CUPTI/lib64/libcupti.so.12",
            "path/lib64/libcupti.so",
            "conda/lib/libcupti.so.12",
        ]);
        let vars = [
            ("CUDA_HOME", "named"),
            ("CUDA_PATH", "path"),
            ("CONDA_PREFIX", "conda"),
            ("VIRTUAL_ENV", "venv"),
            ("HOME", "home"),
        ];
        let expected = [
            "named/extras/CUPTI/lib64/libcupti.so.12",
            "path/lib64/libcupti.so",
            "usr/local/cuda/targets/x86_64-linux/lib/libcupti.so.12",
            "opt/cuda/extras/CUPTI/lib64/libcupti.so.13",
            "conda/lib/libcupti.so.12",
            "venv/lib/python3.9/site-packages/nvidia/cuda_cupti/lib/libcupti.so.11.8",
            "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13",
            "usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib/libcupti.so.13",
            "usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib/libcupti.so.12",
        ];
        assert_eq!(files.installed(&vars), expected);
        assert_eq!(files.installed(&[]), [expected[2], expected[3], expected[7], expected[8]]);
    }

    #[test]
    fn newest_of_several_comes_first() {
        let files = Files::new(&[
            "usr/local/cuda-12.4/lib64/libcupti.so.12",
            "usr/local/cuda-13.2/lib64/libcupti.so",
            "usr/local/cuda-13.2/lib64/libcupti.so.13",
            "usr/local/cuda-9.0/lib64/libcupti.so",
            "usr/local/cuda/lib64/libcupti.so.12",
        ]);
        let expected = [
            "usr/local/cuda/lib64/libcupti.so.12",
            "usr/local/cuda-13.2/lib64/libcupti.so.13",
            "usr/local/cuda-13.2/lib64/libcupti.so",
            "usr/local/cuda-12.4/lib64/libcupti.so.12",
            "usr/local/cuda-9.0/lib64/libcupti.so",
        ];
        assert_eq!(files.installed(&[]), expected);
    }
}
