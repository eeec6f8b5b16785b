//! The launches that a series measures.

use serde::{Deserialize, Serialize};

/// A launch in the function's body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launch {
    /// The launch's index among those in the body, from 0.
    pub index: u32,
    /// The name of the method, function or macro that launches.
    pub name: String,
    /// The line that contains the launch.
    pub line: u32,
}

impl Launch {
    /// Returns the label for the table. The index distinguishes launches on the same line.
    pub(crate) fn label(&self) -> String {
        format!("{} {}, line {}", self.name, self.index, self.line)
    }
}

/// The number of launches per call, for a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Launches {
    /// The minimum number per call.
    pub min: u32,
    /// The mean number per call.
    pub mean: f64,
    /// The maximum number per call.
    pub max: u32,
}

impl Launches {
    /// Returns the number per call, or the least and the largest one.
    pub(crate) fn range(&self) -> String {
        let Launches { min, max, .. } = self;
        if min == max { max.to_string() } else { format!("{min}–{max}") }
    }

    /// Returns the second line of a sum's label on the page.
    #[cfg(feature = "html")]
    pub(crate) fn label(&self) -> String {
        let plural = if self.max == 1 { "" } else { "es" };
        format!("sum of {} launch{plural}", self.range())
    }
}
