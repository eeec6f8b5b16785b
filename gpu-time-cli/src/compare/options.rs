//! Command-line options that determine the verdicts and the exit code.

use clap::ValueEnum;
use gpu_time_report::Snapshot;

use super::thresholds::{Share, Threshold};
use crate::message;

/// The conditions for verdicts and for exit code 1.
#[derive(clap::Args)]
pub struct Judging {
    /// The largest change to ignore, such as 2%, or that of the functions whose names match a
    /// pattern with `*`, such as `*::decode=2%`; may be repeated. The longest matching pattern wins;
    /// patterns that match no function are reported on stderr. [default: 5%]
    #[arg(long = "threshold", value_name = "[PATTERN=]PERCENT")]
    pub thresholds: Vec<Threshold>,
    /// The conditions for exit code 1, in addition to `slower`; separated by commas or given
    /// repeatedly.
    #[arg(
        long,
        value_name = "CONDITION",
        value_enum,
        value_delimiter = ',',
        default_value = "slower"
    )]
    pub fail_on: Vec<FailOn>,
}

impl Judging {
    /// Returns the largest change to ignore of a function.
    pub fn threshold(&self, name: &str) -> Share {
        Threshold::of(&self.thresholds, name)
    }

    /// Prints the patterns that match no function.
    pub fn report_unused(&self, base: &Snapshot, new: &Snapshot) {
        let unused = Threshold::unused(&self.thresholds, base, new);
        if !unused.is_empty() {
            message::print(&format!("no function matches {}", unused.join(", ")));
        }
    }
}

/// A condition for exit code 1.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A series became slower; always in effect.
    Slower,
    /// The verdict on a series is unknown.
    Unknown,
    /// A series is only in the base.
    Missing,
}
