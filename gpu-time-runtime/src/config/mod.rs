//! The configuration: what the environment and the program ask for, validated.
//!
//! Each source becomes [`Options`]; the merged options become the [`Config`] in force.

mod filter;
#[cfg(fuzzing)]
pub mod fuzzing;
mod names;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod problems;
pub(crate) mod report_file;
pub(crate) mod targets;
pub(crate) mod values;

pub(crate) use filter::filter;
pub(crate) use names::unknown_names;

use crate::config::targets::{Format, Target};
use crate::config::{filter::Filter, options::Options};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::sampling::Sampling;

/// Default number of calls and brackets in a trace, which takes some tens of megabytes.
const TRACE_LAST: usize = 100_000;

/// The configuration of the process.
///
/// Where a value of a function is `None`, the attribute of each function decides.
///
/// Invariant: no two targets share a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// `true` unless `GPU_TIME` turns timing off.
    pub is_on: bool,
    /// The targets of the report, if any.
    pub targets: Vec<Target>,
    /// The functions to time.
    pub filter: Filter,
    /// The calls of a function that are timed.
    pub sampling: Option<Sampling>,
    /// The share of wall time that timing may cost, if it is limited.
    pub budget: Option<f64>,
    /// The number of warm-up calls of a function.
    pub warmup: Option<u32>,
    /// The way in which the L2 is evicted before a timed call of a function, if it is.
    pub cold: Option<Option<Cold>>,
    /// The way in which the stream is held for a bracket of a function, if it is.
    pub hold: Option<Option<Hold>>,
    /// The user's bias, or time of an empty kernel, that replaces the table's.
    pub bias: Option<ConfiguredBias>,
    trace_last: usize,
}

impl Config {
    /// The configuration by these options, with defaults where they have no value.
    pub fn new(options: Options) -> Config {
        Config {
            is_on: options.on.and_then(Result::ok).unwrap_or(true),
            targets: options.targets.and_then(Result::ok).unwrap_or_else(|| vec![Target::TABLE]),
            filter: options.filter.and_then(Result::ok).unwrap_or_default(),
            sampling: options.sampling.and_then(Result::ok),
            budget: options.budget.and_then(Result::ok),
            warmup: options.warmup.and_then(Result::ok),
            cold: options.cold.and_then(Result::ok),
            hold: options.hold.and_then(Result::ok),
            bias: options.bias.and_then(Result::ok),
            trace_last: options.trace_last.and_then(Result::ok).unwrap_or(TRACE_LAST),
        }
    }

    /// The number of calls and brackets to keep for a trace; `None` if no trace is to be written.
    pub fn trace_last(&self) -> Option<usize> {
        let is_traced = self.targets.iter().any(|target| target.format == Format::Trace);
        (self.is_on && is_traced).then_some(self.trace_last)
    }
}

#[cfg(test)]
mod tests;
