//! Aborts the process on calls that may crash or deadlock the real CUPTI. Except for `fail`, its
//! functions do nothing unless the script has `fragile`.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::script::script;

static IS_FLUSHING: AtomicBool = AtomicBool::new(false);
/// Number of threads that are loading or unloading code.
static LOADING: AtomicUsize = AtomicUsize::new(0);

/// Number of threads that are in a launch function.
static LAUNCHING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_LOADING: Cell<bool> = const { Cell::new(false) };
    static IS_LAUNCHING: Cell<bool> = const { Cell::new(false) };
}

/// Prints the reason and aborts the process.
pub(crate) fn fail(why: &str) -> ! {
    eprintln!("stand-in for CUPTI: {why}");
    std::process::abort()
}

/// Aborts the process if a flush or a load of code is in progress.
pub(crate) fn check(what: &str) {
    if !script().fragile {
        return;
    }
    let meanwhile = match (IS_FLUSHING.load(SeqCst), LOADING.load(SeqCst)) {
        (true, _) => "a flush",
        (_, 1..) => "a load",
        _ => return,
    };
    fail(&format!("{what} during {meanwhile}"))
}

/// Checks a call that switches a kind off: like [`check`], and also aborts the process if another
/// thread is launching, in versions in which the two may deadlock.
pub(crate) fn check_switch_off() {
    check("a kind is switched");
    let own = usize::from(IS_LAUNCHING.get());
    if script().fragile && script().version.needs_launches_apart() && LAUNCHING.load(SeqCst) > own {
        fail("a kind is switched off during a launch")
    }
}

/// Marks the calling thread as launching.
pub(crate) fn begin_launch() {
    if script().fragile && !IS_LAUNCHING.replace(true) {
        LAUNCHING.fetch_add(1, SeqCst);
    }
}

/// Marks the launch as ended, if its beginning was marked.
pub(crate) fn end_launch() {
    if IS_LAUNCHING.replace(false) {
        LAUNCHING.fetch_sub(1, SeqCst);
    }
}

/// Makes a flush take 5 ms of real time, so that other calls overlap with it.
pub(crate) fn flush() {
    check("a flush begins");
    if script().fragile {
        IS_FLUSHING.store(true, SeqCst);
        thread::sleep(Duration::from_millis(5));
        IS_FLUSHING.store(false, SeqCst);
    }
}

/// Marks the calling thread as loading code, and makes the load take 2 ms of real time.
pub(crate) fn begin_load() {
    if !script().fragile {
        return;
    }
    LOADING.fetch_add(1, SeqCst);
    IS_LOADING.set(true);
    if IS_FLUSHING.load(SeqCst) {
        fail("a load begins during a flush")
    }
    thread::sleep(Duration::from_millis(2));
}

/// Marks the load as ended, if its beginning was marked.
pub(crate) fn end_load() {
    if IS_LOADING.replace(false) {
        LOADING.fetch_sub(1, SeqCst);
    }
}
