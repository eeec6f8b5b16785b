//! The environment variables that the runtime reads, and the name of the host.

#![allow(unsafe_code)] // the auxiliary vector

use std::ffi::{OsStr, OsString};
use std::{env, fs};

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

/// Returns the host name that the kernel reports.
pub(crate) fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
