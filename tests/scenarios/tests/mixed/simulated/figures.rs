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

/// The kinds of figures that depend on chance in phases. Each may be outside in 5 of 100 runs.
const ESTIMATES: [&str; 8] = [
    "self in phases",
    "inclusive in phases",
    "total in phases",
    "busy",
    "idle",
    "annotated",
    "not annotated",
    "not timed",
];

/// Kinds of figures that are known to be wrong, and why. They are counted, and fail no test.
pub const LEFT_OUT: [(&str, &str); 8] = [
    (SELF_OF_CALLER, "a path that no phase met has no time by events if its root was recorded"),
    (
        INCLUSIVE_OF_CALLER,
        "a path that no phase met has no time by events if its root was recorded",
    ),
    (CALLS_OF_CALLER, "a path that no phase met has no calls by events if its root was recorded"),
    (SPANS, "spans say ±0 if only those that were recorded in any case are known"),
    (BESIDE_SPANS, "calls outside of spans are hidden if others of the function are inside"),
    (CALLS_BESIDE_SPANS, "calls outside of spans are hidden if others of the function are inside"),
    (NOT_ANNOTATED_BESIDE_MAIN, "the error of a rare part of the time is too small"),
    (LATE, "a path with waits is not marked if its starved calls are shorter than others"),
];

pub const SELF_OF_CALLER: &str = "self, caller not recorded";
pub const INCLUSIVE_OF_CALLER: &str = "inclusive, caller not recorded";
pub const CALLS_OF_CALLER: &str = "calls, caller not recorded";
pub const SPANS: &str = "spans in phases";
pub const BESIDE_SPANS: &str = "times by events, spans";
pub const CALLS_BESIDE_SPANS: &str = "calls in tree, spans";
pub const NOT_ANNOTATED_BESIDE_MAIN: &str = "not annotated, beside main";
pub const LATE: &str = "times by events, late";

impl Figure {
    pub fn is_outside(&self) -> bool {
        self.off() > 1.0
    }

    /// Returns how far the figure is off, as a part of what is stated.
    pub fn off(&self) -> f64 {
        if self.within.is_nan() || self.found.is_nan() {
            return f64::INFINITY;
        }
        (self.least - self.found).max(self.found - self.most).max(0.0) / self.within
    }

    /// Returns `true` if the figure is so far off that it is wrong, even if it depends on chance.
    pub fn is_wrong(&self) -> bool {
        let is_left_out = LEFT_OUT.iter().any(|(kind, _)| *kind == self.kind);
        let is_estimate = ESTIMATES.contains(&self.kind);
        // Ten standard errors where two are expected, and half of the truth: with few phases, the errors themselves are
        // not well known.
        let is_far = (self.found - self.least).abs() > 0.5 * self.least.abs();
        !is_left_out && if is_estimate { self.off() > 5.0 && is_far } else { self.off() > 1.0 }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure { kind, of, found, least, most, within } = self;
        let mark = if self.is_outside() { "OUTSIDE" } else { "ok" };
        write!(f, "{mark} {kind} of {of}: {found:.1} for {least:.1} to {most:.1} ±{within:.1}")
    }
}
