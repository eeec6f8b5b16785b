//! The validated configuration, as set by the environment and the program.
//!
//! Each source is parsed into [`Options`]; the merged options give the current [`Config`]. The destinations that it
//! names are opened here too: [`output`] and [`report_file`] write reports, and [`kernel_bases`] is the file of
//! calibrated biases.

mod filter;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg_attr(not(feature = "kernels"), allow(dead_code, reason = "only recording measures them"))]
pub(crate) mod kernel_bases;
mod names;
pub(crate) mod options;
pub(crate) mod output;
mod own_files;
mod path_pattern;
pub(crate) mod problems;
pub(crate) mod report_file;
pub(crate) mod targets;
pub(crate) mod values;

pub(crate) use options::Config;

use crate::config::targets::Format;
use crate::types::record_mode::RecordMode;
use gpu_time_report::units::two_digit_percent;

/// The smallest budget with which the whole run is recorded, or phases as functions need them.
const AMPLE_BUDGET: f64 = 0.5;
/// The part by which calls take longer while they are recorded: 4 % of a request with copies and four launches.
const RECORDED_COST: f64 = 0.04;

impl Config {
    /// Returns `true` unless the budget has no room for records. Without room, CUPTI is neither loaded nor subscribed
    /// before the end of the process.
    pub fn may_record(&self) -> bool {
        self.scant_budget().is_none()
    }

    /// Returns the reason if nothing may be recorded, with a remedy.
    pub fn why_no_records(&self) -> Option<String> {
        let budget = two_digit_percent(self.scant_budget()?);
        Some(format!(
            "the budget of {budget} has no room for it, because recorded calls take longer: set \
             `GPU_TIME_RECORD=start:30s` to record the first 30 s, or `20ms/1s` to record phases"
        ))
    }

    /// Returns the budget if it has no room for records, unless the program or its user asks for a part of the run.
    fn scant_budget(&self) -> Option<f64> {
        let asks_for_part =
            matches!(self.recording, Some(RecordMode::Start(_) | RecordMode::Phases(_)));
        // Without the feature, the missing feature is the reason.
        let may_be_scant = cfg!(feature = "kernels") && !asks_for_part;
        self.budget.filter(|budget| may_be_scant && *budget < AMPLE_BUDGET)
    }

    /// Returns when to record, if that is ordered. With a budget, phases take at most the share of the time in which
    /// what they cost recorded calls is within it.
    pub fn ordered_recording(&self) -> Option<RecordMode> {
        match (self.recording?, self.budget) {
            (RecordMode::Phases(plan), Some(budget)) => {
                Some(RecordMode::Phases(plan.limited_to(budget / RECORDED_COST)))
            }
            (recording, _) => Some(recording),
        }
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
