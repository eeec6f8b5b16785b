//! Annotated functions: their settings, counters and series, and the registry of all sites.

pub mod callsite;
pub(crate) mod cost;
pub(crate) mod counters;
pub mod registry;
pub(crate) mod series_id;
pub(crate) mod thread_counters;
pub(crate) mod trials;
