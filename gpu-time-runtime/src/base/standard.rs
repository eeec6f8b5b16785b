//! The standard streams that the program was started with.
//!
//! If the program closes one of them, the next file that it opens gets the same descriptor number. The
//! runtime must not write to that file.

#![allow(unsafe_code)] // the status of a descriptor

use std::ffi::c_int;
use std::fs::Metadata;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A standard stream for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standard {
    Stdout,
    Stderr,
}

/// Identifies the file, pipe or device behind a descriptor, by device and inode number.
type Identity = (libc::dev_t, libc::ino_t);

impl Standard {
    /// Returns the stream that goes to this file, if one does.
    pub fn to_file(file: &Metadata) -> Option<Standard> {
        let identity = Some((file.dev(), file.ino()));
        [Standard::Stdout, Standard::Stderr]
            .into_iter()
            .find(|stream| stream.identity() == identity)
    }

    /// Returns the descriptor without taking `std`'s lock: another thread may hold the lock for ever, and
    /// the process must still be able to end.
    ///
    /// # Errors
    ///
    /// An error if the descriptor is not the standard stream any more.
    pub fn descriptor(self) -> io::Result<BorrowedFd<'static>> {
        if !self.is_intact() {
            return Err(io::Error::other(
                "the program has closed it or opened another file in its place",
            ));
        }
        // SAFETY: the descriptor is open. If another thread closes it now, writes fail.
        Ok(unsafe { BorrowedFd::borrow_raw(self.number()) })
    }

    /// Returns `true` if the stream is the one that the program was started with. A log to which the program has
    /// redirected it looks like a data file, so the report does not go there. Async-signal-safe after [`remember`].
    pub fn is_intact(self) -> bool {
        let now = self.identity();
        now.is_some() && now == self.at_start()
    }

    fn number(self) -> c_int {
        match self {
            Standard::Stdout => libc::STDOUT_FILENO,
            Standard::Stderr => libc::STDERR_FILENO,
        }
    }

    fn identity(self) -> Option<Identity> {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: initialises the status if it succeeds.
        unsafe {
            let is_open = libc::fstat(self.number(), status.as_mut_ptr()) == 0;
            is_open.then(|| status.assume_init()).map(|status| (status.st_dev, status.st_ino))
        }
    }

    fn at_start(self) -> Option<Identity> {
        static AT_START: [OnceLock<Option<Identity>>; 2] = [const { OnceLock::new() }; 2];
        *AT_START.get(self as usize)?.get_or_init(|| self.identity())
    }
}

/// Remembers the streams. Called when the program is loaded.
pub(crate) fn remember() {
    Standard::Stdout.at_start();
    Standard::Stderr.at_start();
}
