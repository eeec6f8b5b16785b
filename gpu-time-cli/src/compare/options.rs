//! Command-line options that determine the verdicts and the exit code.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};
use gpu_time_report::Snapshot;

use super::thresholds::{Share, Thresholds};
use crate::message::{self, Failure};

/// The conditions for verdicts and for exit code 1.
#[derive(clap::Args)]
pub struct Judging {
    /// The largest change to ignore, such as 2%; overrides `threshold` in the file. [default: 5%]
    #[arg(long, value_name = "PERCENT")]
    pub threshold: Option<Share>,
    /// A TOML file with `threshold = "5%"` and a table [functions] that maps name patterns with `*`
    /// to thresholds, such as `"*::decode" = "2%"`. The longest matching pattern wins; patterns that
    /// match no function are reported on stderr.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub thresholds: Option<PathBuf>,
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
    /// Returns the thresholds from the command line and its file.
    pub fn thresholds(&self) -> Result<Thresholds, Failure> {
        let file = self.thresholds.as_deref();
        let mut thresholds = file.map(Thresholds::read).transpose()?.unwrap_or_default();
        if let Some(share) = self.threshold {
            thresholds.default = share;
        }
        Ok(thresholds)
    }

    /// Prints the patterns in the thresholds file that match no function.
    pub fn report_unused(&self, thresholds: &Thresholds, base: &Snapshot, new: &Snapshot) {
        let unused = thresholds.unused(base, new).join(", ");
        if let Some(file) = self.thresholds.as_ref().filter(|_| !unused.is_empty()) {
            message::print(&format!("`{}`: no function matches {unused}", file.display()));
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
