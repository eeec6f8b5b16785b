//! The current configuration, and its application to sites.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Once};
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{clock, console, environment, fork, switches::SWITCHES};
#[cfg(feature = "kernels")]
use crate::config::values;
use crate::config::{Config, options::Options, targets};
use crate::control::budget_control;
use crate::cupti;
use crate::nvtx;
use crate::record::{phase::controller, timeline};
use crate::site::callsite::{CallSite, SiteConfig};
use crate::site::registry;
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::Clock;
use crate::types::record_mode::{Needs, PhasePlan, RecordMode};
use crate::types::sampling::Sampling;

/// The options from both sources, and the resulting configuration.
///
/// Locked while the configuration is applied to a site, so that no site misses a change.
struct ActiveConfig {
    /// Read once, when the runtime is first used.
    environment: Options,
    program: Options,
    config: Arc<Config>,
    needs: Needs,
}

/// `None` until the runtime is first used.
static ACTIVE: Mutex<Option<ActiveConfig>> = Mutex::new(Rank::Config, None);

impl Default for ActiveConfig {
    fn default() -> Self {
        ActiveConfig::begin(Options::default())
    }
}

impl ActiveConfig {
    /// Reads the environment and puts the resulting configuration into force.
    fn begin(program: Options) -> ActiveConfig {
        clock::started();
        let (environment, problems) = Options::from_vars(environment::vars());
        problems.into_iter().for_each(console::complain);
        let config = Config::new(environment.clone().or(program.clone()));
        start(&config, Needs::default(), None);
        if config.is_on && config.nvtx != Some(false) {
            nvtx::attach(config.nvtx == Some(true));
        }
        ActiveConfig { environment, program, config: Arc::new(config), needs: Needs::default() }
    }

    /// Notes what a function needs that is called.
    fn note(&mut self, needs: Needs) {
        let before = self.needs;
        self.needs = before.and(needs);
        if self.needs != before {
            start_recording(&self.config, self.needs);
        }
    }
}

/// Starts the trace, the budget and the recording that are configured, and stops the others. Unless the
/// targets are the same as `before`, reports now which files cannot be written, rather than at the
/// end of a long run.
fn start(config: &Config, needs: Needs, before: Option<&Config>) {
    if config.is_on && before.is_none_or(|before| before.targets != config.targets) {
        targets::doubts(&config.targets).iter().for_each(|line| console::say(line));
    }
    timeline::set(config.trace_last());
    budget_control::set(config.budget);
    let is_whole = matches!(config.bias, Some(ConfiguredBias::Bias(_)));
    SWITCHES.has_given_bias.store(is_whole, Relaxed);
    start_recording(config, needs);
}

fn start_recording(config: &Config, needs: Needs) {
    controller::set(recording(config, needs), config.orders_records(), config.may_record());
}

/// Returns when to record. Without an order, that depends on the functions that have been called.
fn recording(config: &Config, needs: Needs) -> RecordMode {
    if !config.is_on || !config.may_record() {
        return RecordMode::Off;
    }
    config.ordered_recording().unwrap_or(needs.record_mode(RecordMode::Phases(PhasePlan::USUAL)))
}

/// Begins to record if the environment asks for the start, so that CUPTI is on before the program creates a context.
#[cfg(feature = "kernels")]
pub(crate) fn record_start() {
    let asks = environment::var("GPU_TIME_RECORD").is_some_and(|when| {
        when.to_str().is_some_and(|when| when.trim().starts_with(values::START))
    });
    if asks && !registry::sites().is_empty() {
        config();
        controller::wait_for_start();
    }
}

/// Returns `true` if a function or span that needs records has been called.
pub(crate) fn needs_records() -> bool {
    locked(&ACTIVE).as_ref().is_some_and(|active| active.needs.records)
}

/// Notes that the program has spans, which need records.
#[cfg(feature = "tracing")]
pub(crate) fn note_spans() {
    locked(&ACTIVE).get_or_insert_default().note(Needs::RECORDS);
}

/// Returns the current configuration.
pub(crate) fn config() -> Arc<Config> {
    locked(&ACTIVE).get_or_insert_default().config.clone()
}

/// Requests a phase of this length, or of the configured length for `None`. Does nothing if timing
/// is off. Says so once if the budget has no room for records.
pub(crate) fn record_phase(length: Option<Duration>) {
    static ONCE: Once = Once::new();
    // A child would lack the thread of phases, which may hold locks at the fork.
    fork::mark_children();
    let config = config();
    if !config.is_on {
        return;
    }
    let given_up = || {
        let why =
            "CUPTI was given up when the recorded start was over, so that other tools can use it";
        cupti::is_given_up().then(|| why.to_owned())
    };
    match config.why_no_records().or_else(given_up) {
        Some(why) => {
            let line = format!("the requested phase cannot begin: {why}");
            ONCE.call_once(|| console::say(&line));
        }
        None => controller::request(length),
    }
}

/// Configures a site at its first call. Returns `false` if timing is off or the filter excludes it.
pub(crate) fn introduce(site: &'static CallSite) -> bool {
    let mut active = locked(&ACTIVE);
    let active = active.get_or_insert_default();
    let is_on = configure_site(site, &active.config);
    if is_on {
        active.note(Needs { events: site.needs_events(), records: site.needs_records() });
    }
    is_on
}

/// Merges the options set by the program, and applies the result to all sites.
pub(crate) fn change(options: Options) {
    let mut active = locked(&ACTIVE);
    // If this is the first use of the runtime, it starts with these options, because a trace keeps
    // its initial size.
    let Some(active) = &mut *active else {
        *active = Some(ActiveConfig::begin(options));
        return;
    };
    active.program = options.or(std::mem::take(&mut active.program));
    let config = Config::new(active.environment.clone().or(active.program.clone()));
    if config == *active.config {
        return;
    }
    start(&config, active.needs, Some(&active.config));
    active.config = Arc::new(config);
    // Sites that have not been called yet are configured on their first call.
    for site in registry::sites() {
        if site.is_configured() {
            configure_site(site, &active.config);
        }
    }
}

/// Sets which of a site's calls are timed, and how. Returns `false` if timing is off or the filter
/// excludes the site.
fn configure_site(site: &'static CallSite, config: &Config) -> bool {
    let on = config.is_on && config.filter.admits(site.name());
    let sampling = config.sampling.unwrap_or(site.spec.sampling);
    let budgeted = if on { budget_control::add(site, sampling) } else { None };
    site.configure(SiteConfig {
        on,
        warmup: config.warmup.unwrap_or(site.spec.warmup),
        cold: config.cold.unwrap_or(site.spec.cold),
        hold: config.hold.unwrap_or(site.spec.sleep),
        is_recorded: config.may_record()
            && config.recording != Some(RecordMode::Off)
            && site.spec.clock != Clock::Host,
        sampling: budgeted.unwrap_or(sampling),
        is_sampled: budgeted.is_some() || sampling != Sampling::ALL,
    });
    on
}
