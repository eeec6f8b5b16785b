//! The configuration in force.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, OnceLock};

use crate::base::lock::locked;
use crate::base::{clock, console};
use crate::config::{self, Config};
use crate::control::budget_control;
use crate::record::timeline;
use crate::site::callsite::{CallSite, SiteConfig};
use crate::site::registry;
use crate::types::sampling::Sampling;

/// The configuration in force. Locked while it is applied to a site, so that no site misses a change.
static CONFIG: OnceLock<Mutex<Arc<Config>>> = OnceLock::new();

/// Options that the program gave, each under the variable that means the same.
static GIVEN: Mutex<BTreeMap<&'static str, String>> = Mutex::new(BTreeMap::new());

fn current() -> &'static Mutex<Arc<Config>> {
    CONFIG.get_or_init(|| {
        clock::started();
        // Errors in the program's own options were printed when it gave them.
        let invalid = Config::from_vars(variable).1.into_iter();
        invalid.chain(config::unknown(std::env::vars_os())).for_each(console::complain);
        let config = read();
        start(&config);
        Mutex::new(Arc::new(config))
    })
}

/// Starts what the configuration asks for, and stops what it no longer asks for.
fn start(config: &Config) {
    timeline::set(config.trace_last());
    budget_control::set(config.budget());
}

/// The configuration by the environment, and by the program where the environment is silent.
fn read() -> Config {
    let given = |name: &str| locked(&GIVEN).get(name).map(OsString::from);
    Config::from_vars(|name| variable(name).or_else(|| given(name))).0
}

/// An environment variable; an empty one counts as unset.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The configuration in force.
pub(crate) fn config() -> Arc<Config> {
    locked(current()).clone()
}

/// Configures a site at its first call. Returns `true` if its calls are timed.
pub(crate) fn introduce(site: &'static CallSite) -> bool {
    configure_site(site, &locked(current()))
}

/// Takes over options of the program, `None` to withdraw one, and applies the result to all sites.
pub(crate) fn change(options: impl IntoIterator<Item = (&'static str, Option<String>)>) {
    {
        let mut given = locked(&GIVEN);
        for (variable, value) in options {
            match value {
                Some(value) => given.insert(variable, value),
                None => given.remove(variable),
            };
        }
    }
    let mut config = locked(current());
    let new = read().after(&config);
    if new == **config {
        return;
    }
    start(&new);
    *config = Arc::new(new);
    // Sites without a call so far are configured at their first one.
    for site in registry::sites() {
        if site.is_on().is_some() {
            configure_site(site, &config);
        }
    }
}

/// Sets which calls of a site are timed, and how. Returns `true` if any are.
fn configure_site(site: &'static CallSite, config: &Config) -> bool {
    let on = config.is_on() && config.admits(site.name());
    let sampling = config.sampling(site.spec.sampling);
    let budgeted = if on { budget_control::add(site, sampling) } else { None };
    site.configure(SiteConfig {
        on,
        warmup: config.warmup(site.spec.warmup),
        cold: config.cold(site.spec.cold),
        hold: config.hold(site.spec.sleep),
        sampling: budgeted.unwrap_or(sampling),
        is_sampled: budgeted.is_some() || sampling != Sampling::ALL,
    });
    on
}
