//! Detects forked children, in which all calls fail, and the teardown of the library. Keeps the library loaded.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

static IS_FORKED: AtomicBool = AtomicBool::new(false);
static IS_TORN_DOWN: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    IS_FORKED.store(true, Ordering::Relaxed);
}

/// Returns `true` in a child forked after the library was first used.
pub(crate) fn is_forked() -> bool {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        stay_loaded();
        // SAFETY: the handler only stores to an atomic, and the library is not unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    IS_FORKED.load(Ordering::Relaxed)
}

static BEFORE_TEARDOWN: OnceLock<fn()> = OnceLock::new();

extern "C" fn torn_down() {
    BEFORE_TEARDOWN.get().into_iter().for_each(|before| before());
    IS_TORN_DOWN.store(true, Ordering::Relaxed);
}

/// Registers the teardown, which calls `before` first. Exit handlers run in reverse order of
/// registration, so handlers that the program registers later still find the library alive.
pub(crate) fn register_teardown(before: fn()) {
    BEFORE_TEARDOWN.get_or_init(|| {
        stay_loaded();
        // SAFETY: the handler does not block, and the library is not unloaded.
        unsafe { libc::atexit(torn_down) };
        before
    });
}

/// Returns `true` once the teardown has run, in which the real library frees its tables.
pub(crate) fn is_torn_down() -> bool {
    IS_TORN_DOWN.load(Ordering::Relaxed)
}

/// Keeps the library from being unloaded, because the driver and the exit and fork handlers call its
/// functions.
fn stay_loaded() {
    // SAFETY: an all-zero `Dl_info` is valid, the address belongs to this library, and the flags only
    // pin a library that is already loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let own: extern "C" fn() = forked;
        if libc::dladdr(own as *const _, &mut info) != 0 {
            let file = CStr::from_ptr(info.dli_fname);
            libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}
