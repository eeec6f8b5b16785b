//! The end of the process: the exit report, and guards that must not outlive it.

pub(crate) mod clocks;
pub(crate) mod exit;
