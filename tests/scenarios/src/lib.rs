//! Types shared by the random scenario and the test that generates its programs, and the documentation that needs
//! all features.

pub mod script;

/// A module for the doc tests of the page.
#[doc = include_str!("../../../docs/spans.md")]
#[cfg(doctest)]
mod spans {}
