//! The configuration: what the environment and the program ask for, validated.
//!
//! Each source becomes [`Options`]; the merged options become the [`Config`] in force.

mod filter;
mod names;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod problems;
pub(crate) mod report_file;
pub(crate) mod setting;
pub(crate) mod targets;
pub(crate) mod values;

pub(crate) use filter::filter;
pub(crate) use names::unknown_names;

use crate::config::filter::Filter;
use crate::config::options::Options;
use crate::config::targets::{Format, Target};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::sampling::Sampling;

/// Default number of calls and brackets in a trace, which takes some tens of megabytes.
const TRACE_LAST: usize = 100_000;

/// The configuration of the process.
///
/// Where a method takes `site`, that is the value of the function's attribute, which applies unless
/// the user sets one for all functions.
///
/// Invariant: no two targets share a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    is_on: bool,
    targets: Vec<Target>,
    filter: Filter,
    sampling: Option<Sampling>,
    budget: Option<f64>,
    warmup: Option<u32>,
    cold: Option<Option<Cold>>,
    hold: Option<Option<Hold>>,
    bias: Option<ConfiguredBias>,
    trace_last: usize,
}

impl Config {
    /// The configuration by these options, with defaults where they have no value.
    pub fn new(options: Options) -> Config {
        Config {
            is_on: options.on.value().unwrap_or(true),
            targets: options.targets.value().unwrap_or_else(|| vec![Target::TABLE]),
            filter: options.filter.value().unwrap_or_default(),
            sampling: options.sampling.value(),
            budget: options.budget.value(),
            warmup: options.warmup.value(),
            cold: options.cold.value(),
            hold: options.hold.value(),
            bias: options.bias.value(),
            trace_last: options.trace_last.value().unwrap_or(TRACE_LAST),
        }
    }

    /// Returns `true` unless `GPU_TIME` turns timing off.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The targets of the report, if any.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The functions to time.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The calls of a function that are timed.
    pub fn sampling(&self, site: Sampling) -> Sampling {
        self.sampling.unwrap_or(site)
    }

    /// The share of wall time that timing may cost, if it is limited.
    pub fn budget(&self) -> Option<f64> {
        self.budget
    }

    /// The number of warm-up calls of a function.
    pub fn warmup(&self, site: u32) -> u32 {
        self.warmup.unwrap_or(site)
    }

    /// The way in which the L2 is evicted before a timed call, if it is.
    pub fn cold(&self, site: Option<Cold>) -> Option<Cold> {
        self.cold.unwrap_or(site)
    }

    /// Returns `true` if the user sets [`cold`](Config::cold) for all functions.
    pub fn has_cold(&self) -> bool {
        self.cold.is_some()
    }

    /// The way in which the stream is held for a bracket, if it is.
    pub fn hold(&self, site: Option<Hold>) -> Option<Hold> {
        self.hold.unwrap_or(site)
    }

    /// The user's bias, or time of an empty kernel, that replaces the table's.
    pub fn bias(&self) -> Option<ConfiguredBias> {
        self.bias
    }

    /// The number of calls and brackets to keep for a trace; `None` if no trace is to be written.
    pub fn trace_last(&self) -> Option<usize> {
        let is_traced = self.targets.iter().any(|target| target.format == Format::Trace);
        (self.is_on && is_traced).then_some(self.trace_last)
    }
}

#[cfg(test)]
mod tests;
