//! Forked children, in which nothing works.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Returns `true` in a child forked after the library was first used.
pub(crate) fn is_forked() -> bool {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler only stores to an atomic, and the library is not unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    IS_FORKED.load(Ordering::Relaxed)
}
