//! The reasons why a measurement of the event bias or of a flush can fail.

use std::fmt;

use crate::gpu::Fault;

/// A reason why a measurement has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoResult {
    Fault(Fault),
    /// The GPU did not reach the measurement in time, or the host did not enqueue it in time.
    Busy,
    /// The pairs' times differ too much.
    Disagreement,
    /// Other work evicted the lines being timed.
    Disturbed,
    /// Launches return only when the kernel has ended, so no stream can be held.
    Blocking,
}

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoResult::Fault(fault) => return fault.fmt(f),
            NoResult::Busy => "the GPU was busy",
            NoResult::Disagreement => "the measured times differ too much",
            NoResult::Disturbed => "other work on the GPU evicted the lines that are timed",
            NoResult::Blocking => "`CUDA_LAUNCH_BLOCKING` makes every launch wait for its kernel",
        })
    }
}

impl From<Fault> for NoResult {
    fn from(fault: Fault) -> NoResult {
        NoResult::Fault(fault)
    }
}
