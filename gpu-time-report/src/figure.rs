//! A figure with what is known about it.

use std::fmt;
use std::ops::Add;

use crate::marks::{Mark, Printed};
use crate::units::{percent, percent_with_error};

/// A time in nanoseconds, or a share. A share is displayed as a percentage with its error or its marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub value: f64,
    /// The standard error: 0 if none matters, and `None` if it is unknown.
    pub error: Option<f64>,
    pub bound: Bound,
}

/// How a figure may differ from the true value, apart from its error. Of a sum, it is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    Exact,
    AtLeast,
    AtMost,
    /// It may be too large or too small.
    Uncertain,
}

impl Bound {
    /// Returns the bound of a time that is an upper bound or not.
    pub fn at_most(is_bound: bool) -> Bound {
        if is_bound { Bound::AtMost } else { Bound::Exact }
    }
}

impl Figure {
    /// Creates a figure without an error that matters.
    pub fn new(value: f64, bound: Bound) -> Figure {
        Figure { value, error: Some(0.0), bound }
    }

    /// Creates an estimate, of which the error may be unknown.
    pub fn estimate(value: f64, error: Option<f64>) -> Figure {
        Figure { value, error, bound: Bound::Exact }
    }

    /// Returns `true` if the figure has an error that matters or is unknown.
    pub fn is_estimate(self) -> bool {
        self.error != Some(0.0)
    }

    /// Returns `true` if the figure may be too large.
    pub fn is_bound(self) -> bool {
        self.bound >= Bound::AtMost
    }

    /// Returns the marks that the figure needs.
    pub fn marks(self) -> impl Iterator<Item = Mark> {
        let bound = match self.bound {
            Bound::Exact => None,
            Bound::AtLeast => Some(Mark::AtLeast),
            Bound::AtMost => Some(Mark::AtMost),
            Bound::Uncertain => Some(Mark::Uncertain),
        };
        let is_estimate = self.is_estimate() && self.bound != Bound::Uncertain;
        bound.into_iter().chain(is_estimate.then_some(Mark::Estimate))
    }

    /// Returns the text of the value with its marks.
    fn marked(self, value: &str) -> String {
        let marks: String = self.marks().map(Mark::text).collect();
        match self.bound {
            Bound::Uncertain => format!("{value}{marks}"),
            _ => format!("{marks}{value}"),
        }
    }

    /// Does the same for a report that explains the marks.
    pub fn print(self, value: &str, printed: &Printed) -> String {
        self.marks().for_each(|mark| _ = printed.print(mark));
        self.marked(value)
    }

    /// Leaves out the error if it is known.
    #[cfg(feature = "html")]
    pub fn without_error(self) -> Figure {
        Figure { error: self.error.map(|_| 0.0), ..self }
    }
}

impl Add for Figure {
    type Output = Figure;

    /// Adds a figure whose error is independent of this one's.
    fn add(self, other: Figure) -> Figure {
        let errors = self.error.zip(other.error);
        Figure {
            value: self.value + other.value,
            error: errors.map(|(one, other)| one.hypot(other)),
            bound: self.bound.max(other.bound),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.filter(|error| *error != 0.0) {
            Some(error) => f.write_str(&percent_with_error(self.value, Some(error))),
            None => f.write_str(&self.marked(&percent(self.value))),
        }
    }
}
