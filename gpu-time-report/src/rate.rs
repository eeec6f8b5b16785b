//! The work of a series and its rate.

use serde::{Deserialize, Serialize};

/// The bytes that calls moved, as given by `bytes` in the attribute. Samples of unknown size, and
/// samples in which nothing ran, are left out.
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
    /// Returns the number of samples whose bytes are known.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the bytes of one call, or `None` if calls differ.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// Returns the bytes of all these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the rate in gigabytes (10⁹ bytes) per second: the bytes of a call divided by the net
    /// median if all samples have the same size, else all bytes divided by the total net time of
    /// the samples of known size. Starved samples are left out, unless there are no others; the
    /// rate is then a lower bound. `None` without a net time.
    pub fn gb_per_s(&self) -> Option<f64> {
        self.gb_per_s
    }

    /// Returns the rate as a share of the device's [peak](crate::Device::peak_gb_per_s). Above 1,
    /// caches must have served some of the bytes.
    pub fn peak_share(&self) -> Option<f64> {
        self.peak_share
    }
}

/// The floating-point operations that calls did, as given by `flops` in the attribute. Samples with
/// an unknown number, and samples in which nothing ran, are left out.
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
    /// Returns the number of samples whose operations are known.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the operations of one call, or `None` if calls differ.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// Returns the operations of all these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the rate in 10¹² operations per second, by the rule of [`Bytes::gb_per_s`].
    pub fn tflop_per_s(&self) -> Option<f64> {
        self.tflop_per_s
    }
}
