//! The budget for the cost of timing.

use serde::{Deserialize, Serialize};

/// A process's budget: the fraction of wall time available for timing, and the cost so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    #[doc(hidden)]
    pub share: f64,
    #[doc(hidden)]
    pub cost_share: f64,
    #[doc(hidden)]
    #[serde(default)]
    pub host_ns: u64,
    #[doc(hidden)]
    #[serde(default)]
    pub device_ns: u64,
}

impl Budget {
    /// Returns the fraction of wall time available for timing on the host and on the device, summed
    /// over all threads.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Returns the fraction of wall time recently spent on timing, averaged over about ten seconds.
    /// It includes the time that CUPTI adds to launches after its first recording.
    pub fn cost_share(&self) -> f64 {
        self.cost_share
    }

    /// Returns the host time spent on timing since the budget was set, over all threads.
    pub fn host_ns(&self) -> u64 {
        self.host_ns
    }

    /// Returns the device time spent on timing: events, holds, flushes, and the work that kernels
    /// have to repeat because of them.
    pub fn device_ns(&self) -> u64 {
        self.device_ns
    }
}
