//! The interface to the configuration for its fuzz target.

use std::ffi::OsString;

use crate::config::options::Options;
use crate::config::{Config, targets};
use crate::types::attribute::Hold;

/// Reads the configuration from these variables and checks its invariants. Returns all messages.
pub fn read(vars: &[(OsString, OsString)], functions: &[&str]) -> Vec<String> {
    let (options, mut messages) = Options::from_vars(vars.iter().cloned());
    let config = Config::new(options);

    for (index, target) in config.targets.iter().enumerate() {
        assert!(config.targets[..index].iter().all(|other| other.sink != target.sink));
    }
    assert!(config.budget.is_none_or(|share| share > 0.0 && share < 1.0));
    if let Some(Some(Hold::For(ns))) = config.hold {
        assert!((1..=1_000_000_000).contains(&ns));
    }
    messages.extend(targets::doubts(&config.targets));
    // Neither call may take exponential time.
    functions.iter().for_each(|name| _ = config.filter.admits(name));
    config.filter.suggest(functions);
    messages
}
