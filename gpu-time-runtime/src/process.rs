//! What there is one of in a process: the configuration, the switch, the clock it started by.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

use crate::config::Config;
use crate::target;
use crate::trace;

/// What every call looks at, in one line of memory.
#[repr(align(64))]
pub(crate) struct Switches {
    /// Whether calls are timed at all.
    on: AtomicBool,
    /// Set for good in a child forked after CUDA was initialised, and while the process ends.
    closed: AtomicBool,
    /// This is such a child.
    pub forked: AtomicBool,
    /// What a run of `until_stable` wants of the L2; 0 is nothing.
    pub cold_override: AtomicU8,
    /// Whether calls and brackets are kept for a trace.
    pub traced: AtomicBool,
}

pub(crate) static SWITCHES: Switches = Switches {
    on: AtomicBool::new(true),
    closed: AtomicBool::new(false),
    forked: AtomicBool::new(false),
    cold_override: AtomicU8::new(0),
    traced: AtomicBool::new(false),
};

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
        if let Some(last) = config.trace_last() {
            trace::start(last);
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

/// A moment in nanoseconds since then.
pub(crate) fn since_start_ns(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(started().monotonic);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether calls are timed now.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.on.load(Relaxed)
}

/// Turns timing on or off, unless it is off for good.
pub(crate) fn switch(on: bool) {
    SWITCHES.on.store(on, Relaxed);
    if SWITCHES.closed.load(Relaxed) {
        SWITCHES.on.store(false, Relaxed);
    }
}

/// Whether timing is off for good.
pub(crate) fn is_closed() -> bool {
    SWITCHES.closed.load(Relaxed)
}

/// Turns timing off for good.
pub(crate) fn close() {
    SWITCHES.closed.store(true, Relaxed);
    SWITCHES.on.store(false, Relaxed);
}
