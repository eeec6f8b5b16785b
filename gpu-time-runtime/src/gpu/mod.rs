//! The interface through which brackets use a GPU: the [`Gpu`] trait and its types. Tests of the
//! recorder use a scripted fake.

#[cfg(test)]
pub(crate) mod fake;

use std::fmt;

use crate::stats::clock_fit::ClockFit;
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::{attribute::Cold, sample::Lost};

/// The reason why a driver call failed, or was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The driver's error code.
    Code(u32),
    /// The context was destroyed or reset, or the driver is shutting down.
    ContextGone,
    /// The context is in a permanent error state.
    Sticky,
    /// A bounded resource of the runtime is used up.
    Exhausted,
    /// The event has no time, because it was recorded during a stream capture.
    Captured,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Code(code) => write!(f, "driver error {code}"),
            Fault::ContextGone => f.write_str("the context is gone"),
            Fault::Sticky => f.write_str("the context failed permanently"),
            Fault::Exhausted => f.write_str("out of resources"),
            Fault::Captured => f.write_str("the stream was being captured"),
        }
    }
}

impl From<Fault> for Lost {
    fn from(fault: Fault) -> Lost {
        match fault {
            Fault::Code(_) => Lost::Driver,
            Fault::ContextGone | Fault::Sticky => Lost::Context,
            Fault::Exhausted => Lost::Events,
            Fault::Captured => Lost::Capture,
        }
    }
}

/// A hold on a stream: a kernel that occupies the stream until the host releases it.
///
/// Invariant: released exactly once, by [`Gpu::release`]. If the deadline passes first, the kernel
/// ends on its own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamHold {
    pub slot: u32,
    pub ticket: u64,
}

/// A released hold, for [`Gpu::has_expired`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldResult {
    pub slot: u32,
    pub ticket: u64,
}

/// The work to enqueue before a bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub cold: Option<Cold>,
    pub hold: Option<HoldPlan>,
}

/// The duration for which a bracket's stream is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldPlan {
    /// Until the bracket has been enqueued, for at most this many nanoseconds.
    Until(u64),
    /// For this many nanoseconds.
    For(u64),
}

/// The driver interface used by the recorder. No method waits for the GPU, panics, or changes the
/// caller's context or capture mode.
pub(crate) trait Gpu: Sync + 'static {
    /// Returns `true` if `stream` is being captured into a graph.
    fn is_capturing(&self, stream: Stream) -> Result<bool, Fault>;
    /// Creates an idle event.
    fn create_event(&self) -> Result<Event, Fault>;
    /// Creates two idle events, or none.
    fn create_pair(&self) -> Result<EventPair, Fault> {
        let start = self.create_event()?;
        let stop = self.create_event().inspect_err(|_| self.discard(&[start]))?;
        Ok(EventPair { start, stop })
    }
    /// Destroys events that nobody will record or read any more.
    fn discard(&self, events: &[Event]);
    /// Enqueues a record of the pair's start event.
    fn record_start(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault>;
    /// Enqueues a record of the pair's stop event.
    fn record_stop(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault>;
    /// Checks with the driver that the context still exists. Must be called before
    /// [`Gpu::elapsed`], because the driver dereferences an event's handle even if its context is
    /// gone.
    fn check_alive(&self) -> Result<(), Fault>;
    /// Returns `true` if the context is known to be gone, so that no more measurements are possible
    /// in it. Does not call the driver.
    fn is_gone(&self) -> bool;
    /// Returns the time between two recorded events in nanoseconds, or `None` until the GPU has
    /// passed both.
    ///
    /// This also serves as the check for completion: unlike `cuEventQuery`, it does not take the
    /// context's lock.
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault>;
    /// Returns the nanoseconds from the pair's first event to its second. The GPU must have passed
    /// both. The result is negative if the second event came first, and `None` if the driver call
    /// fails.
    fn since(&self, pair: &EventPair) -> Option<f64>;
    /// Returns the alignment between the device clock and the host clock, once it is known.
    fn clock(&self) -> Option<ClockFit>;
    /// Returns the host time, in nanoseconds since an arbitrary point in time.
    fn now_ns(&self) -> u64;
    /// Enqueues an L2 flush.
    fn flush(&self, stream: Stream, cold: Cold) -> Result<(), Fault>;
    /// Enqueues a kernel that holds `stream` until it is released, for at most `deadline_ns`.
    fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<StreamHold, Fault>;
    /// Enqueues a kernel that holds `stream` for `ns` nanoseconds.
    fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault>;
    /// Releases a held stream.
    fn release(&self, hold: StreamHold) -> HoldResult;
    /// Returns `false` if the hold is known to have lasted until its release. The result is final
    /// once the GPU has passed the hold: until then, the kernel may still be running.
    fn has_expired(&self, hold: HoldResult) -> bool;
    /// Returns `true` if a raw time in nanoseconds indicates an empty bracket.
    fn is_at_floor(&self, raw_ns: f64) -> bool;
    /// Returns the time that `inner` brackets inside a bracket add to it, and a long queue behind it if it is `queued`.
    /// `None` if it is unknown.
    fn added_ns(&self, inner: u16, queued: bool) -> Option<f64>;
}
