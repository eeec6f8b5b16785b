//! Ends the process where CUPTI may crash, or wait for itself for ever.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::script::script;

static IS_FLUSHING: AtomicBool = AtomicBool::new(false);
/// The threads that load code.
static LOADING: AtomicUsize = AtomicUsize::new(0);

/// The threads that launch.
static LAUNCHING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_LOADING: Cell<bool> = const { Cell::new(false) };
    static IS_LAUNCHING: Cell<bool> = const { Cell::new(false) };
}

/// Ends the process.
pub(crate) fn fail(why: &str) -> ! {
    eprintln!("stand-in for CUPTI: {why}");
    std::process::abort()
}

/// Ends the process if another thread flushes or loads code meanwhile.
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

/// Ends the process if another thread launches meanwhile, in versions where both may wait for each other.
pub(crate) fn check_switch_off() {
    check("a kind is switched");
    let own = usize::from(IS_LAUNCHING.get());
    if script().fragile && script().version.needs_launches_apart() && LAUNCHING.load(SeqCst) > own {
        fail("a kind is switched off during a launch")
    }
}

/// Begins a launch.
pub(crate) fn begin_launch() {
    if script().fragile && !IS_LAUNCHING.replace(true) {
        LAUNCHING.fetch_add(1, SeqCst);
    }
}

/// Ends a launch, if the client saw the beginning.
pub(crate) fn end_launch() {
    if IS_LAUNCHING.replace(false) {
        LAUNCHING.fetch_sub(1, SeqCst);
    }
}

/// Takes the time of a flush.
pub(crate) fn flush() {
    check("a flush begins");
    if script().fragile {
        IS_FLUSHING.store(true, SeqCst);
        thread::sleep(Duration::from_millis(5));
        IS_FLUSHING.store(false, SeqCst);
    }
}

/// Begins to load code, and takes its time.
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

/// Ends to load code, if the client saw the beginning.
pub(crate) fn end_load() {
    if IS_LOADING.replace(false) {
        LOADING.fetch_sub(1, SeqCst);
    }
}
