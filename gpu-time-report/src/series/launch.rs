//! The launches that a series measures.

use serde::{Deserialize, Serialize};

/// A launch in the function's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    #[doc(hidden)]
    pub index: u32,
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub line: u32,
}

impl Launch {
    /// Returns the launch's index among those in the body, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the name of the method, function or macro that launches.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line that contains the launch.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the label for the table. The index distinguishes launches on the same line.
    pub(crate) fn label(&self) -> String {
        format!("{} {}, line {}", self.name, self.index, self.line)
    }
}

/// The number of launches per call, for a sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    #[doc(hidden)]
    pub min: u32,
    #[doc(hidden)]
    pub mean: f64,
    #[doc(hidden)]
    pub max: u32,
}

impl Launches {
    /// Returns the second line of a sum's label on the page.
    #[cfg(feature = "html")]
    pub(crate) fn label(&self) -> String {
        let Launches { min, max, .. } = self;
        match (min, max) {
            (1, 1) => "sum of 1 launch".to_owned(),
            _ if min == max => format!("sum of {max} launches"),
            _ => format!("sum of {min}–{max} launches"),
        }
    }

    /// Returns the minimum number per call.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// Returns the mean number per call.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the maximum number per call.
    pub fn max(&self) -> u32 {
        self.max
    }
}
