//! Calls on files that `std` lacks.

#![allow(unsafe_code)] // calls of the operating system

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates a file without a name, which is gone when the process ends. Returns `None` if the file system has no such
/// files, or if [`name`] could not name it.
pub(crate) fn nameless(folder: &Path, mode: u32) -> Option<File> {
    let mut options = File::options();
    let file = options.write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder).ok()?;
    fs::symlink_metadata(descriptor(&file)).is_ok().then_some(file)
}

/// Gives a nameless file its name.
///
/// # Errors
///
/// An error if there is a file with this name already.
pub(crate) fn name(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(descriptor(file))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: both paths end with a NUL.
    let result =
        unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Locks a file against other holders of this lock until it is closed. Returns `false` if there is another holder, and
/// `true` on file systems without locks.
pub(crate) fn lock(file: &File) -> bool {
    // SAFETY: changes only the lock of an open descriptor.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Returns the path of an open file's descriptor.
pub(crate) fn descriptor(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
