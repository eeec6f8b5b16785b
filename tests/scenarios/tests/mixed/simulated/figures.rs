//! One figure of a report beside the truth.

use std::fmt;

/// A figure, with the range in which the truth is and the distance that the report states.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The kind of figure, such as `median`.
    pub kind: &'static str,
    /// The row, path or device.
    pub of: String,
    pub found: f64,
    pub least: f64,
    pub most: f64,
    /// Two standard errors, and what else the report says that it may be off.
    pub within: f64,
}

impl Figure {
    pub fn is_outside(&self) -> bool {
        !(self.found >= self.least - self.within && self.found <= self.most + self.within)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { kind, of, found, least, most, within } = self;
        let mark = if self.is_outside() { "OUTSIDE" } else { "ok" };
        write!(f, "{mark} {kind} of {of}: {found:.1} for {least:.1} to {most:.1} ±{within:.1}")
    }
}
