//! A series' work and the corresponding rate.

use serde::{Deserialize, Serialize};

/// The bytes moved by calls, as given by `bytes` in the attribute. Samples with an unknown size,
/// and samples in which nothing ran, are not included.
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
    /// Returns the number of samples with known bytes.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the bytes per call, or `None` if calls differ.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// Returns the total bytes of these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the rate in gigabytes (10⁹ bytes) per second. If all samples have the same size,
    /// this is the bytes per call divided by the net median; otherwise it is the total bytes
    /// divided by the total net time of the samples with a known size. Starved samples are not
    /// included unless there are no others, in which case the rate is a lower bound. `None` without
    /// a net time.
    pub fn gb_per_s(&self) -> Option<f64> {
        self.gb_per_s
    }

    /// Returns the rate as a fraction of the device's [peak](crate::Device::peak_gb_per_s). If it
    /// is above 1, caches served some of the bytes, or the attribute's `bytes` overstates them.
    pub fn peak_share(&self) -> Option<f64> {
        self.peak_share
    }
}

/// The floating-point operations done by calls, as given by `flops` in the attribute. Samples with
/// an unknown number of operations, and samples in which nothing ran, are not included.
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
    /// Returns the number of samples with known operations.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the operations per call, or `None` if calls differ.
    pub fn per_call(&self) -> Option<f64> {
        self.per_call
    }

    /// Returns the total operations in these samples.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the rate in 10¹² operations per second, computed as in [`Bytes::gb_per_s`].
    pub fn tflop_per_s(&self) -> Option<f64> {
        self.tflop_per_s
    }
}
