//! What timing may cost, and what it did.

use serde::{Deserialize, Serialize};

/// The budget of a process.
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
    /// The share of the wall time that timing may cost: of the host and of the device, added up over all
    /// threads.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The share that it cost lately, in the mean over about ten seconds.
    pub fn cost_share(&self) -> f64 {
        self.cost_share
    }

    /// What it cost the host since there is this budget, over all threads.
    pub fn host_ns(&self) -> u64 {
        self.host_ns
    }

    /// What it cost the devices: events, holds, flushes, and what kernels do again because of these.
    pub fn device_ns(&self) -> u64 {
        self.device_ns
    }
}
