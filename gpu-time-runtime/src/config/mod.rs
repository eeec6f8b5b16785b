//! The validated configuration, as set by the environment and the program.
//!
//! Each source is parsed into [`Options`]; the merged options give the current [`Config`]. The destinations that it
//! names are opened here too: [`output`] and [`report_file`] write reports, and [`kernel_bases`] is the file of
//! calibrated biases.

mod filter;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod kernel_bases;
mod names;
pub(crate) mod options;
pub(crate) mod output;
mod own_files;
mod path_pattern;
pub(crate) mod problems;
pub(crate) mod report_file;
pub(crate) mod setting;
pub(crate) mod targets;
pub(crate) mod values;

pub(crate) use filter::filter;

use crate::config::targets::{Format, Target};
use crate::config::{filter::Filter, options::Options};
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
use crate::types::{record_mode::RecordMode, sampling::Sampling};
use gpu_time_report::{Detail, View, units::two_digit_percent};

/// The default number of calls, of brackets and of kernels in a trace. They take some tens of megabytes.
const TRACE_LAST: usize = 100_000;
/// The smallest budget that has room for what CUPTI adds to every launch of a process once it has recorded.
const AMPLE_BUDGET: f64 = 0.5;

/// The configuration of the process.
///
/// If an option for functions is `None`, each function's attribute decides.
///
/// Invariant: no two targets have the same sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// `true` unless `GPU_TIME` turns timing off.
    pub is_on: bool,
    /// The report targets.
    pub targets: Vec<Target>,
    /// The functions to time.
    pub filter: Filter,
    /// The calls to time for each function.
    pub sampling: Option<Sampling>,
    /// The fraction of wall time that timing may cost, if limited.
    pub budget: Option<f64>,
    /// The number of warm-up calls for each function.
    pub warmup: Option<u32>,
    /// The method by which the L2 is evicted before a function's timed calls, if any.
    pub cold: Option<Option<Cold>>,
    /// The method by which the stream is held for a function's brackets, if any.
    pub hold: Option<Option<Hold>>,
    /// When CUPTI records everything that the process enqueues. Otherwise, the functions decide.
    pub recording: Option<RecordMode>,
    /// `false` if calls never become NVTX ranges. Otherwise they do if a tool can attach. `true` also asks
    /// for a message if none can.
    pub nvtx: Option<bool>,
    /// The label of the run in reports.
    pub label: Option<String>,
    /// The version of the program in reports.
    pub program_version: Option<String>,
    /// The amount of detail in the table.
    pub detail: Detail,
    /// A bias set by the user, or CUPTI's duration for an empty kernel, which replaces the
    /// measured, stored and tabulated ones.
    pub bias: Option<ConfiguredBias>,
    trace_last: usize,
    /// The rows of the table: functions, or the call tree.
    pub view: View,
}

impl Config {
    /// Creates the configuration from these options, with defaults for unset ones.
    pub fn new(options: Options) -> Config {
        Config {
            is_on: options.on.value().unwrap_or(true),
            targets: options.targets.value().unwrap_or_else(|| vec![Target::TABLE]),
            filter: options.filter.value().unwrap_or_default(),
            sampling: options.sampling.value(),
            budget: options.budget.value().flatten(),
            warmup: options.warmup.value(),
            cold: options.cold.value(),
            hold: options.hold.value(),
            recording: options.recording.value(),
            nvtx: options.nvtx.value(),
            label: options.label.value(),
            program_version: options.program_version.value(),
            detail: options.detail.value().unwrap_or_default(),
            bias: options.bias.value(),
            trace_last: options.trace_last.value().unwrap_or(TRACE_LAST),
            view: options.view.value().unwrap_or_default(),
        }
    }

    /// Returns `true` unless the budget has no room for records. Without room, CUPTI is neither loaded nor subscribed
    /// before the end of the process.
    pub fn may_record(&self) -> bool {
        self.scant_budget().is_none()
    }

    /// Returns the reason if nothing may be recorded, with a remedy.
    pub fn why_no_records(&self) -> Option<String> {
        let budget = two_digit_percent(self.scant_budget()?);
        Some(format!(
            "the budget of {budget} has no room for it: once CUPTI has recorded, every launch is slower. Replace \
             `GPU_TIME_BUDGET` by phases, such as `GPU_TIME_RECORD=20ms/1s`"
        ))
    }

    /// Returns the budget if it has no room for records.
    fn scant_budget(&self) -> Option<f64> {
        // Without the feature, the missing feature is the reason.
        self.budget.filter(|budget| cfg!(feature = "kernels") && *budget < AMPLE_BUDGET)
    }

    /// Returns `true` if the program or its user asks for records, whether or not functions need them.
    pub fn orders_records(&self) -> bool {
        self.recording.is_some_and(|recording| recording != RecordMode::Off)
    }

    /// Returns the number of calls, of brackets and of kernels to keep for a trace, or `None` if no trace
    /// will be written.
    pub fn trace_last(&self) -> Option<usize> {
        let is_traced = self.targets.iter().any(|target| target.format == Format::Trace);
        (self.is_on && is_traced).then_some(self.trace_last)
    }
}

#[cfg(test)]
mod tests;
