//! The work of a series, with its rate.

use serde::{Deserialize, Serialize};

/// The bytes that calls moved, as the attribute's `bytes` says. Samples whose bytes are not known, and
/// those inside which nothing ran, are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    #[doc(hidden)]
    pub samples: u64,
    #[doc(hidden)]
    pub per_call: Option<f64>,
    #[doc(hidden)]
    pub total: f64,
    #[doc(hidden)]
    pub gb_per_s: Option<f64>,
    #[doc(hidden)]
    pub peak_share: Option<f64>,
}

impl Bytes {
    /// The samples whose bytes are known.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The bytes of one call, or `None` where they differ from call to call.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// The bytes of all these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Gigabytes (10⁹ bytes) in a second: a call's bytes by the net median where every sample has the
    /// same, else all bytes by all net time of the samples whose bytes are known. Starved samples are
    /// left out, unless there are no others: then this is a lower bound. `None` without a net time.
    pub fn gb_per_s(&self) -> Option<f64> {
        self.gb_per_s
    }

    /// The rate's share of the device's [peak](crate::Device::peak_gb_per_s). Above 1, caches must have
    /// served some of the bytes.
    pub fn peak_share(&self) -> Option<f64> {
        self.peak_share
    }
}

/// The floating-point operations that calls did, as the attribute's `flops` says. Samples whose
/// operations are not known, and those inside which nothing ran, are left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flops {
    #[doc(hidden)]
    pub samples: u64,
    #[doc(hidden)]
    pub per_call: Option<f64>,
    #[doc(hidden)]
    pub total: f64,
    #[doc(hidden)]
    pub tflop_per_s: Option<f64>,
}

impl Flops {
    /// The samples whose operations are known.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The operations of one call, or `None` where they differ from call to call.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// The operations of all these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// 10¹² operations in a second, by the rule of [`Bytes::gb_per_s`].
    pub fn tflop_per_s(&self) -> Option<f64> {
        self.tflop_per_s
    }
}
