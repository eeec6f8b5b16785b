//! Driver handles: streams and events.

/// A stream handle as the driver knows it; 0 is the NULL stream, 2 the calling thread's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(pub usize);

impl Stream {
    /// Whether the handle means a different stream on every thread.
    pub fn is_per_thread(self) -> bool {
        self.0 == 2
    }

    /// Whether it is the NULL stream, which no capture can be of.
    pub fn is_legacy(self) -> bool {
        self.0 <= 1
    }

    /// Whether the handle names no context by itself.
    pub fn is_implicit(self) -> bool {
        self.0 <= 2
    }
}

/// A timing event.
///
/// Invariant: made by [`Gpu::create_event`], and destroyed by [`Gpu::discard`] only, whose caller owns it
/// and gives it up: else the driver does that with its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event(usize);

impl Event {
    pub const fn new(handle: usize) -> Self {
        Event(handle)
    }

    pub fn handle(&self) -> usize {
        self.0
    }
}

/// The two events of a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventPair {
    pub start: Event,
    pub stop: Event,
}
