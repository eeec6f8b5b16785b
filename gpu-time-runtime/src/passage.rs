//! The GPU's way through the brackets of one stream, in the host's time.
//!
//! A sample is fed when the GPU reached its start only after the host had enqueued its stop. That the
//! start still reads pending then would not show it, because the host sees what the GPU does a
//! microsecond or two late; so the times of both are compared.

use crate::gpu::{Event, EventPair, Gpu};

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
}

impl ClockFit {
    /// The host's time at which the GPU was `device_ns` after the anchor, at the earliest.
    fn earliest_ns(&self, device_ns: f64) -> f64 {
        self.zero_ns + device_ns * self.rate - device_ns.abs() * self.rate_error
    }
}

/// Where the GPU is known to have been in a stream.
pub(crate) struct Passage {
    fit: Option<ClockFit>,
    /// The host's time at which the GPU passed the last stop, at the earliest.
    passed_ns: Option<f64>,
}

impl Passage {
    /// The beginning of a walk through a stream's brackets in their order.
    pub fn new(fit: Option<ClockFit>) -> Passage {
        Passage { fit, passed_ns: None }
    }

    /// Passes a bracket of `raw_ns` without asking when. Answers whether the GPU reached its start
    /// only after the host had enqueued its stop.
    ///
    /// A start comes after the stop before it, unless the bracket is `nested`: then the stop before it may
    /// be that of one inside. Where it is late enough already, as in a long queue, nobody needs to ask
    /// for the start's own time.
    #[inline]
    pub fn reaches<G: Gpu>(
        &mut self,
        gpu: &G,
        start: &Event,
        raw_ns: f64,
        stopped_ns: u64,
        nested: bool,
    ) -> bool {
        let Some(fit) = self.fit else { return false };
        let enough_ns = stopped_ns as f64 + fit.margin_ns;
        let started_ns = match self.passed_ns {
            Some(passed_ns) if !nested && passed_ns > enough_ns => passed_ns,
            _ => {
                let pair = EventPair { start: fit.anchor, stop: *start };
                match gpu.since(&pair) {
                    Some(device_ns) => fit.earliest_ns(device_ns),
                    None => {
                        self.passed_ns = None;
                        return false;
                    }
                }
            }
        };
        self.passed_ns = Some(started_ns + raw_ns);
        started_ns > enough_ns
    }

    /// Passes a bracket of which nothing is to be known.
    #[inline]
    pub fn skip(&mut self) {
        self.passed_ns = None;
    }

    /// Whether the GPU passed the last stop after this moment of the host's.
    #[inline]
    pub fn is_past(&self, host_ns: Option<u64>) -> bool {
        match (self.passed_ns, host_ns) {
            (Some(passed_ns), Some(host_ns)) => passed_ns > host_ns as f64,
            _ => false,
        }
    }
}
