//! Types shared by the random scenario and the test that generates its programs, and the documentation that needs
//! all features.

pub mod composition;
pub mod script;

/// Compiles the code in `docs/spans.md` as doc tests.
#[doc = include_str!("../../../docs/spans.md")]
#[cfg(doctest)]
mod spans {}
