//! The environment variables that the runtime reads, and the name of the host.

#![allow(unsafe_code)] // the auxiliary vector

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// The current directory when the program was loaded.
static START: OnceLock<PathBuf> = OnceLock::new();

/// Returns an environment variable, unless the environment [is foreign](is_foreign).
pub(crate) fn var(name: &str) -> Option<OsString> {
    if is_foreign() { None } else { env::var_os(name) }
}

/// Returns all environment variables, unless the environment [is foreign](is_foreign).
pub(crate) fn vars() -> impl Iterator<Item = (OsString, OsString)> {
    (!is_foreign()).then(env::vars_os).into_iter().flatten()
}

/// Returns `true` for a value that counts as unset: nothing, or only blanks.
pub(crate) fn is_blank(value: &OsStr) -> bool {
    value.to_str().is_some_and(|text| text.trim().is_empty())
}

/// Returns `true` if the process has more rights than the user who set its environment, as in a set-user-ID
/// program. A report path in that environment could overwrite any file.
fn is_foreign() -> bool {
    // SAFETY: reads a value that the kernel passed to the program.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns the directory in which the program was started, or the current one if it was not loaded by then. Whoever set the
/// environment meant paths relative to that, whatever the program does before its first timed call.
pub(crate) fn start_directory() -> &'static Path {
    START.get_or_init(|| env::current_dir().unwrap_or_default())
}

/// Returns `true` in a test binary of `cargo test`, which cargo runs under its hashed name in `deps`. A bench also is
/// one, but gets `--bench`.
pub(crate) fn is_in_test() -> bool {
    let is_test = || env::current_exe().is_ok_and(|path| is_hashed(&path));
    is_test() && env::args_os().all(|argument| argument != "--bench")
}

fn is_hashed(program: &Path) -> bool {
    let folder = program.parent().and_then(Path::file_name);
    let name = program.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let hash = name.rsplit_once('-').map_or("", |(_, hash)| hash);
    folder.is_some_and(|folder| folder == "deps")
        && hash.len() == 16
        && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns the host name that the kernel reports.
pub(crate) fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_have_hashed_names() {
        assert!(is_in_test());
        for (path, expected) in [
            ("/t/debug/deps/app-0123456789abcdef", true),
            ("/t/debug/app", false),
            ("/t/debug/app-0123456789abcdef", false),
            ("/t/debug/deps/my-app", false),
            ("/t/debug/examples/kernels", false),
        ] {
            assert_eq!(is_hashed(Path::new(path)), expected, "{path}");
        }
    }
}
