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

/// The smallest budget that has room for what CUPTI adds to every launch of a process once it has recorded.
const AMPLE_BUDGET: f64 = 0.5;

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
