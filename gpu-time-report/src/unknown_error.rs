//! Reasons why the error of an estimated total is unknown.

use serde::{Deserialize, Serialize};

/// The reason why the sample of the calls does not show the error of their total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownError {
    /// The calls were picked by number, and the program may have the same period.
    Counted,
    /// Sampled calls gave several samples each, which were not drawn independently.
    Repeated,
    /// There are too few samples to have included rare calls that may make up much of the total.
    Few,
    /// Few of the samples make up most of the error.
    Dominated,
}

impl UnknownError {
    /// Returns the name in the reports.
    pub fn name(self) -> &'static str {
        match self {
            UnknownError::Counted => "counted",
            UnknownError::Repeated => "repeated",
            UnknownError::Few => "few",
            UnknownError::Dominated => "dominated",
        }
    }
}
