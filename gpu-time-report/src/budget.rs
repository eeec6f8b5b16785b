//! The budget for the cost of timing.

use serde::{Deserialize, Serialize};

/// The budget of a process: the share of wall time that timing may take, and the cost so far.
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
    /// Returns the share of wall time that timing may take on the host and on the device, added up
    /// over all threads.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Returns the share that timing took recently, averaged over about ten seconds.
    pub fn cost_share(&self) -> f64 {
        self.cost_share
    }

    /// Returns the time that timing took on the host since the budget was set, over all threads.
    pub fn host_ns(&self) -> u64 {
        self.host_ns
    }

    /// Returns the time that timing took on the devices: events, holds, flushes, and the work that
    /// kernels repeat because of them.
    pub fn device_ns(&self) -> u64 {
        self.device_ns
    }
}
