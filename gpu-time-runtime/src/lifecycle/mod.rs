//! The end of the process: the exit report, and locked clocks, which must not outlive it.

pub(crate) mod clocks;
pub(crate) mod exit;
