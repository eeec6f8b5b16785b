//! What the user configured, through the environment or in the program.

mod filter;
mod names;
pub(crate) mod output;
mod targets;
mod values;
mod vars;

use std::ffi::OsString;

use crate::config::output::{Format, Target};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::sampling::Sampling;
use filter::Filter;
pub(crate) use names::unknown;
use targets::REPORT;
use values::{bias, cold, hold, on_or_off, share, trace_last};
use vars::Vars;

/// Calls and brackets that a trace keeps: some tens of megabytes.
const TRACE_LAST: usize = 100_000;

/// The configuration of the process.
///
/// Invariant: no two targets share a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    on: bool,
    /// What `GPU_TIME_REPORT` says, and where that is.
    report: Option<String>,
    targets: Vec<Target>,
    filter: Filter,
    /// `None`: as each site says. The same for the next three.
    warmup: Option<u32>,
    cold: Option<Option<Cold>>,
    hold: Option<Option<Hold>>,
    sampling: Option<Sampling>,
    budget: Option<f64>,
    bias: Option<ConfiguredBias>,
    trace_last: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            on: true,
            report: None,
            targets: vec![Target::TABLE],
            filter: Filter::default(),
            warmup: None,
            cold: None,
            hold: None,
            sampling: None,
            budget: None,
            bias: None,
            trace_last: TRACE_LAST,
        }
    }
}

impl Config {
    /// Reads the configuration from variables, which `get` looks up. A variable that is empty counts
    /// as one that is not set. What makes no sense is named in one line each, and leaves its default.
    pub fn from_vars(get: impl Fn(&str) -> Option<OsString>) -> (Config, Vec<String>) {
        let mut vars = Vars::new(get);
        let default = Config::default();
        let report = vars.get(REPORT);
        let config = Config {
            on: vars.read("GPU_TIME", "`on` and `off`", on_or_off).unwrap_or(default.on),
            targets: report
                .as_deref()
                .map_or(default.targets, |text| targets::read(text, &mut vars.complaints)),
            report,
            filter: vars.filter(),
            warmup: vars.read("GPU_TIME_WARMUP", "whole numbers such as `10`", |v| v.parse().ok()),
            cold: vars.read("GPU_TIME_COLD", "`off`, `clean` and `dirty`", cold),
            hold: vars.read(
                "GPU_TIME_SLEEP",
                "`off`, `on` and a time up to `1s`, such as `50us`",
                hold,
            ),
            sampling: vars.read(
                "GPU_TIME_SAMPLE",
                "shares from `0` to `1`, such as `0.01` or `1%`",
                |v| Sampling::of_share(share(v)?),
            ),
            budget: vars.read(
                "GPU_TIME_BUDGET",
                "shares above `0` and below `1`, such as `1%` or `0.01`",
                |v| share(v).filter(|share| *share > 0.0 && *share < 1.0),
            ),
            bias: vars.read(
                "GPU_TIME_BIAS",
                "a time up to `1ms` to subtract, such as `2.2us`, and what CUPTI says of an empty kernel, \
                 such as `cupti:545ns`",
                bias,
            ),
            trace_last: vars
                .read("GPU_TIME_TRACE_LAST", "whole numbers from `1` to `1000000`", trace_last)
                .unwrap_or(default.trace_last),
        };
        (config, vars.complaints)
    }

    /// The same after another. Reports go where they went if nothing else is said of them, though the
    /// program has changed its folder meanwhile.
    pub fn after(mut self, before: &Config) -> Config {
        if self.report == before.report {
            self.targets.clone_from(&before.targets);
        }
        self
    }

    /// Whether anything is timed.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether a site of this name is timed.
    pub fn admits(&self, name: &str) -> bool {
        self.filter.admits(name)
    }

    /// The calls that warm up a site whose attribute says `spec`.
    pub fn warmup(&self, spec: u32) -> u32 {
        self.warmup.unwrap_or(spec)
    }

    /// Whether and how the L2 is emptied for a site whose attribute says `spec`.
    pub fn cold(&self, spec: Option<Cold>) -> Option<Cold> {
        self.cold.unwrap_or(spec)
    }

    /// Whether the user says that for every site.
    pub fn has_cold(&self) -> bool {
        self.cold.is_some()
    }

    /// Whether and how the stream is held for a site whose attribute says `spec`.
    pub fn hold(&self, spec: Option<Hold>) -> Option<Hold> {
        self.hold.unwrap_or(spec)
    }

    /// The calls that are timed of a site whose attribute says `spec`.
    pub fn sampling(&self, spec: Sampling) -> Sampling {
        self.sampling.unwrap_or(spec)
    }

    /// The share of the time that timing may cost.
    pub fn budget(&self) -> Option<f64> {
        self.budget
    }

    /// What is subtracted from raw times, or what CUPTI says of an empty kernel.
    pub fn bias(&self) -> Option<ConfiguredBias> {
        self.bias
    }

    /// How many calls and brackets a trace keeps, if one is to be written.
    pub fn trace_last(&self) -> Option<usize> {
        let is_traced = self.targets.iter().any(|target| target.format == Format::Trace);
        (self.on && is_traced).then_some(self.trace_last)
    }

    /// Where the report goes. Empty if nowhere.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

#[cfg(test)]
mod tests;
