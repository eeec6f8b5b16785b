//! What the recorder needs of a GPU, and nothing more, so that its rules are tested by a scripted fake.

#[cfg(test)]
pub(crate) mod fake;

use std::fmt;

use crate::stats::clock_fit::ClockFit;
use crate::types::attribute::Cold;
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::sample::Lost;

/// A driver call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The driver's error code.
    Code(u32),
    /// The context was destroyed or reset, or the driver is shutting down.
    ContextGone,
    /// The context is in an error state that it will not leave.
    Sticky,
    /// A resource of ours that has a bound is used up.
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
            Fault::Exhausted => f.write_str("there was none left"),
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

/// A stream held by a kernel that waits for the host.
///
/// Invariant: released exactly once, by [`Gpu::release`], or by its deadline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub slot: u32,
    pub ticket: u64,
}

/// What became of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldResult {
    pub slot: u32,
    pub ticket: u64,
}

/// What precedes a bracket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preparation {
    pub cold: Option<Cold>,
    pub hold: Option<HoldPlan>,
}

/// How a bracket's stream is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldPlan {
    /// Until the bracket has been enqueued, and for at most so many nanoseconds.
    Until(u64),
    /// For so many nanoseconds.
    For(u64),
}

/// The driver as the recorder sees it. None of these waits for the GPU, panics or leaves the caller's
/// context or capture mode changed.
pub(crate) trait Gpu: Sync + 'static {
    /// Whether `stream` is being captured into a graph.
    fn is_capturing(&self, stream: Stream) -> Result<bool, Fault>;
    /// A new idle event.
    fn create_event(&self) -> Result<Event, Fault>;
    /// Destroys events that were recorded while their stream was being captured, and that have no time
    /// any more.
    fn discard(&self, pair: &EventPair);
    /// Enqueues a record of `event`.
    fn record(&self, event: &Event, stream: Stream) -> Result<(), Fault>;
    /// Whether the context is still there, which must be asked before [`Gpu::elapsed`]: the driver
    /// follows the handle of an event whose context is gone to wherever that leads.
    fn check_alive(&self) -> Result<(), Fault>;
    /// Whether it is known already that the context is there no more.
    fn is_gone(&self) -> bool;
    /// Time between two recorded events in nanoseconds, or `None` while the GPU has not passed both.
    ///
    /// This is also how completion is asked for: it takes no lock, where a query takes the context's.
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault>;
    /// Nanoseconds from the first event of the pair to the second, of which the latter has been passed;
    /// negative where it came first. `None` where the driver will not say.
    fn since(&self, pair: &EventPair) -> Option<f64>;
    /// How the device's time lies in the host's, once that is known.
    fn clock(&self) -> Option<ClockFit>;
    /// The host's time in nanoseconds since some moment.
    fn now_ns(&self) -> u64;
    /// Enqueues the eviction of the L2.
    fn flush(&self, stream: Stream, cold: Cold) -> Result<(), Fault>;
    /// Enqueues a kernel that holds `stream` until released, and no longer than `deadline_ns`.
    fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<Held, Fault>;
    /// Enqueues a kernel that holds `stream` for `ns` nanoseconds.
    fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault>;
    /// Lets the stream go.
    fn release(&self, held: Held) -> HoldResult;
    /// Whether the hold has ended by its deadline. Of one that was just released, that is known but for what
    /// the GPU does in that moment; for good once the GPU has passed it.
    fn has_expired(&self, hold: HoldResult) -> bool;
    /// Whether a raw time in nanoseconds says that nothing ran inside.
    fn is_at_floor(&self, raw_ns: f64) -> bool;
}
