//! Writes to descriptors of any kind without raising signals, and gives up if nothing reads from them.

#![allow(unsafe_code)] // descriptors that other code owns

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::signal_mask::BlockedSignals;

/// The longest wait for the reader of a full pipe. The process may be about to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before another attempt if a descriptor is ready but takes nothing.
const PAUSE: Duration = Duration::from_millis(1);
/// A pipe that is ready takes this many bytes without blocking.
const CHUNK: usize = libc::PIPE_BUF;

/// Writes all bytes.
///
/// # Errors
///
/// An error if the write fails, or if a pipe, socket or terminal stays full for longer than `patience`.
pub(crate) fn write_all(to: impl AsFd, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let _blocked = BlockedSignals::raised_by_writes();
    let reopened = reopened(to.as_fd());
    let to = reopened.as_ref().map_or(to.as_fd(), File::as_fd);
    let mut deadline = Instant::now() + patience;
    while let Some(chunk) = bytes.chunks(CHUNK).next() {
        match write_ready(to, chunk, deadline) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                deadline = Instant::now() + patience;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a pipe or terminal once more in non-blocking mode. Setting `O_NONBLOCK` on `to` would set it for all
/// processes that have inherited `to`. Returns `None` if this is unnecessary or impossible.
fn reopened(to: BorrowedFd<'_>) -> Option<File> {
    let fd = to.as_raw_fd();
    // SAFETY: reads the flags of an open descriptor.
    let blocks = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK == 0;
    let path = format!("/proc/self/fd/{fd}");
    let is_pipe = || fs::metadata(&path).is_ok_and(|status| status.file_type().is_fifo());
    if !blocks || !(to.is_terminal() || is_pipe()) {
        return None;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().write(true).custom_flags(flags).open(path).ok()
}

/// Writes some of the bytes as soon as the descriptor is ready.
fn write_ready(to: BorrowedFd<'_>, bytes: &[u8], deadline: Instant) -> io::Result<usize> {
    let wait = deadline.saturating_duration_since(Instant::now());
    let mut ready = libc::pollfd { fd: to.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: polls one descriptor.
    match unsafe { libc::poll(&raw mut ready, 1, wait.as_millis() as libc::c_int) } {
        0 => return Err(io::Error::new(ErrorKind::TimedOut, "nothing reads from it")),
        1 => {}
        _ => return Err(io::Error::last_os_error()),
    }
    let (start, length) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: reads initialised bytes.
    let mut written = unsafe { libc::send(ready.fd, start, length, libc::MSG_DONTWAIT) };
    if written < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOTSOCK) {
        // SAFETY: as above.
        written = unsafe { libc::write(ready.fd, start, length) };
    }
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
