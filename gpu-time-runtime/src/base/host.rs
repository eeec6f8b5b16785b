//! The machine that the process runs on.

use std::fs;

/// Returns the host name that the kernel reports.
pub(crate) fn name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
