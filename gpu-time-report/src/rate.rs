//! A series' work and the corresponding rate.

use serde::{Deserialize, Serialize};

/// The bytes moved by calls, as given by `bytes` in the attribute. Samples with an unknown size,
/// and samples in which nothing ran, are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bytes {
    /// The number of samples with known bytes.
    pub samples: u64,
    /// The bytes per call, or `None` if calls differ.
    pub per_call: Option<f64>,
    /// The total bytes of these samples.
    pub total: f64,
    /// The rate in gigabytes (10⁹ bytes) per second. If all samples have the same size, this is the
    /// bytes per call divided by the net median; otherwise it is the total bytes divided by the
    /// total net time of the samples with a known size. Starved samples are not included unless
    /// there are no others, in which case the rate is a lower bound. `None` without a net time.
    pub gb_per_s: Option<f64>,
    /// The rate as a fraction of the device's [peak](crate::Device::peak_gb_per_s). If it is above
    /// 1, caches served some of the bytes, or the attribute's `bytes` overstates them.
    pub peak_share: Option<f64>,
}

/// The floating-point operations done by calls, as given by `flops` in the attribute. Samples with
/// an unknown number of operations, and samples in which nothing ran, are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Flops {
    /// The number of samples with known operations.
    pub samples: u64,
    /// The operations per call, or `None` if calls differ.
    pub per_call: Option<f64>,
    /// The total operations in these samples.
    pub total: f64,
    /// The rate in 10¹² operations per second, computed as in [`Bytes::gb_per_s`].
    pub tflop_per_s: Option<f64>,
}
