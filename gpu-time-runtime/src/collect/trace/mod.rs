//! The timeline as a trace file for Perfetto and chrome://tracing.

pub(crate) mod chrome;
pub(crate) mod event;
pub(crate) mod layout;
pub(crate) mod tracks;
