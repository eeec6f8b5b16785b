//! Annotated functions: their settings, counters and series, and the list of all of them.

pub mod callsite;
pub(crate) mod cost;
pub(crate) mod counters;
pub mod registry;
pub(crate) mod series_id;
pub(crate) mod warmup;
