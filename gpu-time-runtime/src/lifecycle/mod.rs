//! The end of the process, and guards that must not outlive it.

pub(crate) mod clocks;
pub(crate) mod exit;
