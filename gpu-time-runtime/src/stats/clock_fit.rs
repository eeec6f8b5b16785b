//! The device's clock on the host's time line.

use crate::types::handles::Event;

/// How the device's time lies in the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockFit {
    /// The event that the device's time is counted from.
    pub anchor: Event,
    /// The host's time by which the GPU had passed the anchor, at the earliest.
    pub zero_ns: f64,
    /// Host nanoseconds in a device nanosecond, and how far off that may be.
    pub rate: f64,
    pub rate_error: f64,
    /// How much longer than at best the GPU may take to see what the host has enqueued.
    pub margin_ns: f64,
    /// The GPU passed the anchor no earlier than this time of the host's, and no more than so much later.
    pub early_ns: f64,
    pub window_ns: f64,
}

/// A time on the device as one of the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub host_ns: f64,
    /// How far off it may be, before or after.
    pub error_ns: f64,
}

impl ClockFit {
    /// The host's time at which the GPU was `device_ns` after the anchor, at the earliest.
    pub fn earliest_ns(&self, device_ns: f64) -> f64 {
        self.zero_ns + device_ns * self.rate - device_ns.abs() * self.rate_error
    }

    /// How far apart two such times lie at least that are so far apart on the device.
    pub fn least_ns(&self, device_ns: f64) -> f64 {
        device_ns * (self.rate - self.rate_error)
    }

    /// The host's time at which the GPU was `device_ns` after the anchor.
    pub fn moment(&self, device_ns: f64) -> Moment {
        Moment {
            host_ns: self.early_ns + self.window_ns / 2.0 + device_ns * self.rate,
            error_ns: self.window_ns / 2.0 + device_ns.abs() * self.rate_error,
        }
    }
}
