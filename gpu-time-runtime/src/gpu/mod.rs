//! The interface through which brackets use a GPU: the [`Gpu`] trait and its types. The recorder's
//! tests run on a scripted fake.

#[cfg(test)]
pub(crate) mod fake;

use std::fmt;

use crate::stats::clock_fit::ClockFit;
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::{attribute::Cold, sample::Lost};

/// A driver call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The driver's error code.
    Code(u32),
    /// The context was destroyed or reset, or the driver is shutting down.
    ContextGone,
    /// The context is in an error state that it will not leave.
    Sticky,
    /// One of the runtime's own bounded resources is used up.
    Exhausted,
    /// An event has no time, because it was recorded while its stream was being captured.
    Captured,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Code(code) => write!(f, "driver error {code}"),
            Fault::ContextGone => f.write_str("the context is gone"),
            Fault::Sticky => f.write_str("the context failed for good"),
            Fault::Exhausted => f.write_str("none left"),
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

/// A hold of a stream, by a kernel that waits for the host.
///
/// Invariant: released exactly once by [`Gpu::release`]. If the deadline passes first, the kernel
/// ends by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamHold {
    pub slot: u32,
    pub ticket: u64,
}

/// A hold that was released, for [`Gpu::has_expired`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldResult {
    pub slot: u32,
    pub ticket: u64,
}

/// The work that precedes a bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub cold: Option<Cold>,
    pub hold: Option<HoldPlan>,
}

/// The way in which a bracket's stream is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldPlan {
    /// Until the bracket has been enqueued, and for at most this many nanoseconds.
    Until(u64),
    /// For this many nanoseconds.
    For(u64),
}

/// The driver as the recorder uses it. No method waits for the GPU, panics, or changes the caller's
/// context or capture mode.
pub(crate) trait Gpu: Sync + 'static {
    /// Returns `true` if `stream` is being captured into a graph.
    fn is_capturing(&self, stream: Stream) -> Result<bool, Fault>;
    /// Creates an idle event.
    fn create_event(&self) -> Result<Event, Fault>;
    /// Destroys events that were recorded while their stream was being captured, which can never be
    /// read again.
    fn discard(&self, pair: &EventPair);
    /// Enqueues the record of the pair's start.
    fn record_start(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault>;
    /// Enqueues the record of the pair's stop.
    fn record_stop(&self, pair: &EventPair, stream: Stream) -> Result<(), Fault>;
    /// Asks the driver whether the context still exists. To be called before [`Gpu::elapsed`]: the
    /// driver dereferences the handle of an event even if its context is gone.
    fn check_alive(&self) -> Result<(), Fault>;
    /// Returns `true` if the context is known to be gone, so that nothing can be measured in it any
    /// more, without asking the driver.
    fn is_gone(&self) -> bool;
    /// Returns the time between two recorded events in nanoseconds, or `None` while the GPU has not
    /// passed both.
    ///
    /// This also serves to ask for completion: it takes no lock, where a query takes the context's.
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault>;
    /// Returns the nanoseconds from the first event of the pair to the second, which the GPU has
    /// passed. Negative if the second came first. `None` if the driver fails.
    fn since(&self, pair: &EventPair) -> Option<f64>;
    /// Returns the alignment of the device's clock with the host's, once it is known.
    fn clock(&self) -> Option<ClockFit>;
    /// Returns the host's time, in nanoseconds since an arbitrary moment.
    fn now_ns(&self) -> u64;
    /// Enqueues an eviction of the L2.
    fn flush(&self, stream: Stream, cold: Cold) -> Result<(), Fault>;
    /// Enqueues a kernel that holds `stream` until it is released, or for `deadline_ns` at most.
    fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<StreamHold, Fault>;
    /// Enqueues a kernel that holds `stream` for `ns` nanoseconds.
    fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault>;
    /// Releases the stream.
    fn release(&self, hold: StreamHold) -> HoldResult;
    /// Returns `true` if the hold ended by its deadline. The answer is final once the GPU has
    /// passed the hold. Just after the release, the kernel may be ending at that moment.
    fn has_expired(&self, hold: HoldResult) -> bool;
    /// Returns `true` if a raw time in nanoseconds is that of a bracket in which nothing ran.
    fn is_at_floor(&self, raw_ns: f64) -> bool;
}
