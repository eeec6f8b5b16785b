//! The current configuration, and its application to sites.

use std::sync::{Arc, Once};
use std::time::Duration;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{clock, console, environment, fork};
use crate::config::{Config, options::Options, targets};
use crate::control::budget_control;
use crate::nvtx;
use crate::record::{timeline, window};
use crate::site::callsite::{CallSite, SiteConfig};
use crate::site::registry;
use crate::types::sampling::Sampling;

/// The options from both sources, and the resulting configuration.
///
/// Locked while the configuration is applied to a site, so that no site misses a change.
struct ActiveConfig {
    /// Read once, when the runtime is first used.
    environment: Options,
    program: Options,
    config: Arc<Config>,
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
        start(&config, None);
        if config.is_on && config.nvtx != Some(false) {
            nvtx::attach(config.nvtx == Some(true));
        }
        ActiveConfig { environment, program, config: Arc::new(config) }
    }
}

/// Starts the trace, the budget and the windows that are configured, and stops the others. Unless the
/// targets are the same as `before`, reports now which files cannot be written, rather than at the
/// end of a long run.
fn start(config: &Config, before: Option<&Config>) {
    if config.is_on && before.is_none_or(|before| before.targets != config.targets) {
        targets::doubts(&config.targets).iter().for_each(|line| console::say(line));
    }
    timeline::set(config.trace_last());
    budget_control::set(config.budget);
    let may_open = config.is_on && config.may_record();
    window::thread::set(config.windows.filter(|_| may_open), config.may_record());
}

/// Returns the current configuration.
pub(crate) fn config() -> Arc<Config> {
    locked(&ACTIVE).get_or_insert_default().config.clone()
}

/// Requests a window of this length, or of the configured length for `None`. Does nothing if timing
/// is off. Says so once if the budget has no room for windows.
pub(crate) fn open_window(length: Option<Duration>) {
    static ONCE: Once = Once::new();
    // A child would lack the thread that opens windows, which may hold locks at the fork.
    fork::mark_children();
    let config = config();
    if !config.is_on {
        return;
    }
    match config.why_no_records() {
        Some(why) => {
            let line = format!("the requested window cannot be opened: {why}");
            ONCE.call_once(|| console::say(&line));
        }
        None => window::thread::request(length),
    }
}

/// Configures a site at its first call. Returns `false` if timing is off or the filter excludes it.
pub(crate) fn introduce(site: &'static CallSite) -> bool {
    configure_site(site, &locked(&ACTIVE).get_or_insert_default().config)
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
    start(&config, Some(&active.config));
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
        kernels: config.recorded_kernels(site.spec.kernels, site.spec.clock),
        sampling: budgeted.unwrap_or(sampling),
        is_sampled: budgeted.is_some() || sampling != Sampling::ALL,
    });
    on
}

#[cfg(all(test, feature = "kernels"))]
mod tests {
    use super::*;
    use crate::config::setting::Setting;
    use crate::types::attribute::{Clock, Spec};
    use crate::types::kernel_rate::KernelRate;

    #[test]
    fn kernels_follow_variable_then_attribute_then_clock() {
        let [usual, half] = [KernelRate::USUAL, KernelRate::share(0.5)].map(Some);
        for (variable, attribute, clock, share, opens_first) in [
            (None, None, Clock::Events, 0.0, false),
            (None, usual, Clock::Events, 1.0 / 16.0, true),
            (None, half, Clock::Events, 0.5, false),
            (None, None, Clock::Kernels, 1.0, true),
            (Some("on"), half, Clock::Events, 0.5, false),
            (Some("on"), None, Clock::Events, 1.0 / 16.0, true),
            (Some("on"), None, Clock::Host, 0.0, false),
            (Some("1%"), half, Clock::Kernels, 0.01, false),
            (Some("off"), half, Clock::Kernels, 0.0, false),
        ] {
            let spec = Spec { kernels: attribute, clock, ..Spec::named("test::f") };
            let site: &'static CallSite = Box::leak(Box::new(CallSite::new(spec)));
            assert_eq!((site.kernels_share(), site.opens_first()), (0.0, false), "unconfigured");
            let configure = |on: &str| {
                let vars = [("GPU_TIME", on), ("GPU_TIME_KERNELS", variable.unwrap_or_default())];
                let vars = vars.map(|(name, value)| (name.into(), value.into()));
                let (options, problems) = Options::from_vars(vars);
                assert_eq!(problems, [""; 0]);
                configure_site(site, &Config::new(options));
            };
            configure("on");
            let opened = (site.kernels_share(), site.opens_first(), site.is_opened());
            assert_eq!(opened, (share, opens_first, share > 0.0), "{variable:?} {attribute:?}");
            configure("off");
            assert!(!site.is_opened() && site.kernels_share() == 0.0 && !site.opens_first());
        }
    }

    #[test]
    fn unrelated_changes_open_no_further_first_call() {
        let spec = Spec { kernels: Some(KernelRate::USUAL), ..Spec::named("test::first") };
        let site: &'static CallSite = Box::leak(Box::new(CallSite::new(spec)));
        let configure = |label: &str, filter: &str, kernels: Option<KernelRate>| {
            let options = Options {
                label: Setting::Value(label.to_owned()),
                filter: Setting::Value(crate::config::filter(filter, &mut |_, why| {
                    panic!("{why}")
                })),
                kernels: kernels.map_or(Setting::Unset, Setting::Value),
                ..Options::default()
            };
            configure_site(site, &Config::new(options));
        };
        configure("one", "test::*", None);
        configure("two", "test::*", None);
        assert!(site.opens_first(), "still to come");
        configure("three", "test::*", None);
        configure("three", "other::*", None);
        configure("three", "test::*", None);
        assert!(!site.opens_first(), "the rate is the same");
        configure("three", "test::*", Some(KernelRate::OFF));
        configure("three", "test::*", None);
        assert!(site.opens_first(), "the rate has changed");
    }
}
