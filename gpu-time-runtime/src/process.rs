//! What there is one of in a process: the configuration, the switch, the clock it started by.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime};

use crate::config::{self, Config};
use crate::lock::locked;
use crate::site::CallSite;
use crate::target;
use crate::{configure, registry, steer, trace};

/// What every call looks at, in one line of memory.
#[repr(align(64))]
pub(crate) struct Switches {
    /// Whether calls are timed at all.
    on: AtomicBool,
    /// Set for good in a child forked after the first call of a timed function, and while the process ends.
    closed: AtomicBool,
    /// This is such a child.
    pub forked: AtomicBool,
    /// What a run of `until_stable` wants of the L2; 0 is nothing.
    pub cold_override: AtomicU8,
    /// Whether calls and brackets are kept for a trace.
    pub traced: AtomicBool,
    /// Whether timing has a budget.
    pub budget: AtomicBool,
}

pub(crate) static SWITCHES: Switches = Switches {
    on: AtomicBool::new(true),
    closed: AtomicBool::new(false),
    forked: AtomicBool::new(false),
    cold_override: AtomicU8::new(0),
    traced: AtomicBool::new(false),
    budget: AtomicBool::new(false),
};

/// When the runtime was first needed.
#[derive(Clone, Copy)]
pub(crate) struct Started {
    pub wall: SystemTime,
    pub monotonic: Instant,
}

struct Process {
    config: Mutex<Arc<Config>>,
    started: Started,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

fn process() -> &'static Process {
    PROCESS.get_or_init(|| {
        // What the program says wrongly it was told when it said it.
        let wrong = Config::from_vars(set).1.into_iter();
        wrong.chain(config::unknown(std::env::vars_os())).for_each(complain);
        let config = read();
        start(&config);
        let started = Started { wall: SystemTime::now(), monotonic: Instant::now() };
        Process { config: Mutex::new(Arc::new(config)), started }
    })
}

/// What was configured wrongly, for the report.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// A program that configures for ever is told so in the report as often as this.
const MOST_COMPLAINTS: usize = 100;

/// Says what was configured wrongly, and keeps it for the report.
pub(crate) fn complain(complaint: String) {
    target::say(&complaint);
    let mut complaints = locked(&COMPLAINTS);
    if complaints.len() < MOST_COMPLAINTS && !complaints.contains(&complaint) {
        complaints.push(complaint);
    }
}

/// What was configured wrongly.
pub(crate) fn complaints() -> Vec<String> {
    locked(&COMPLAINTS).clone()
}

/// Begins what the configuration asks for, and ends what it asks for no more.
fn start(config: &Config) {
    trace::set(config.trace_last());
    steer::set(config.budget());
}

/// The configuration by the environment, and by the program where that says nothing.
fn read() -> Config {
    Config::from_vars(|name| set(name).or_else(|| configure::given(name))).0
}

/// What the environment says.
fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The configuration as it is now.
pub(crate) fn config() -> Arc<Config> {
    locked(&process().config).clone()
}

/// Applies the configuration to a site that is called for the first time. Answers whether its calls
/// are timed.
pub(crate) fn introduce(site: &'static CallSite) -> bool {
    // Under the lock, so that no site misses what is configured meanwhile.
    site.introduce(&locked(&process().config))
}

/// Applies what the program has configured meanwhile.
pub(crate) fn reconfigure() {
    let mut config = locked(&process().config);
    let new = read().after(&config);
    if new == **config {
        return;
    }
    start(&new);
    *config = Arc::new(new);
    // Those that nobody has called yet ask for themselves.
    for site in registry::sites() {
        if site.is_on().is_some() {
            site.introduce(&config);
        }
    }
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
