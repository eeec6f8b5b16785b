//! Conversion of device times to host times.

use crate::types::handles::Event;

/// A linear mapping from the device clock to the host clock, with bounds on its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockFit {
    /// The event that marks device time 0.
    pub anchor: Event,
    /// The earliest host time at which the GPU can have passed the anchor.
    pub zero_ns: f64,
    /// Host nanoseconds per device nanosecond, and the largest error of this rate.
    pub rate: f64,
    pub rate_error: f64,
    /// The time that the GPU may take to see enqueued work, in excess of the shortest delay.
    pub margin_ns: f64,
    /// The GPU passed the anchor within `window_ns` after the host time `early_ns`.
    pub early_ns: f64,
    pub window_ns: f64,
}

/// A device time, converted to a host time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub host_ns: f64,
    /// The largest error in either direction.
    pub error_ns: f64,
}

impl ClockFit {
    /// Returns the earliest host time at which the GPU can have been `device_ns` past the anchor.
    pub fn earliest_ns(&self, device_ns: f64) -> f64 {
        self.zero_ns + device_ns * self.rate - device_ns.abs() * self.rate_error
    }

    /// Returns the shortest host time that `device_ns` on the device can correspond to.
    pub fn least_ns(&self, device_ns: f64) -> f64 {
        device_ns * (self.rate - self.rate_error)
    }

    /// Returns the host time at which the GPU was `device_ns` past the anchor.
    pub fn moment(&self, device_ns: f64) -> Moment {
        Moment {
            host_ns: self.early_ns + self.window_ns / 2.0 + device_ns * self.rate,
            error_ns: self.window_ns / 2.0 + device_ns.abs() * self.rate_error,
        }
    }
}
