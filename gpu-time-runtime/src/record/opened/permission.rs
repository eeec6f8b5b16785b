//! The permission to record. Once CUPTI has recorded, it slows down every launch of the process, so the budget
//! controller decides whether a program with a budget may record at all.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::cupti;

/// The answer to the question whether kernels may be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Permission {
    Granted,
    /// The program's launches are being counted.
    Undecided,
    /// CUPTI is unavailable, or the budget has no room for what it adds to every launch.
    Refused,
}

static PERMISSION: AtomicU8 = AtomicU8::new(Permission::Granted as u8);

/// Returns the answer. Loads CUPTI and subscribes on the first call, which starts the count of launches.
#[inline]
pub(crate) fn permission() -> Permission {
    if cupti::is_available() { decided() } else { Permission::Refused }
}

/// Returns the answer for a process that has CUPTI.
#[inline]
pub(crate) fn decided() -> Permission {
    match PERMISSION.load(Relaxed) {
        0 => Permission::Granted,
        1 => Permission::Undecided,
        _ => Permission::Refused,
    }
}

/// Changes the answer.
pub(crate) fn set(permission: Permission) {
    PERMISSION.store(permission as u8, Relaxed);
}
