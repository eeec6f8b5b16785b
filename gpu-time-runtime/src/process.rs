//! What there is one of in a process: the configuration, the switch, the clock it started by.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

use crate::config::Config;
use crate::report::target;

/// Whether calls are timed at all. Read on every call.
static ON: AtomicBool = AtomicBool::new(true);
/// Set for good in a child forked after CUDA was initialised, and while the process ends.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// When the runtime was first needed.
#[derive(Clone, Copy)]
pub(crate) struct Started {
    pub wall: SystemTime,
    pub monotonic: Instant,
}

struct Process {
    config: Config,
    started: Started,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

fn process() -> &'static Process {
    PROCESS.get_or_init(|| {
        let (config, complaints) = Config::from_vars(|name| std::env::var_os(name));
        for complaint in complaints {
            target::say(&complaint);
        }
        let started = Started { wall: SystemTime::now(), monotonic: Instant::now() };
        Process { config, started }
    })
}

/// The configuration, read from the environment when it is first asked for.
pub(crate) fn config() -> &'static Config {
    &process().config
}

/// When the runtime was first needed.
pub(crate) fn started() -> Started {
    process().started
}

/// Whether calls are timed now.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Turns timing on or off, unless it is off for good.
pub(crate) fn switch(on: bool) {
    ON.store(on, Relaxed);
    if CLOSED.load(Relaxed) {
        ON.store(false, Relaxed);
    }
}

/// Whether timing is off for good.
pub(crate) fn is_closed() -> bool {
    CLOSED.load(Relaxed)
}

/// Turns timing off for good.
pub(crate) fn close() {
    CLOSED.store(true, Relaxed);
    ON.store(false, Relaxed);
}
