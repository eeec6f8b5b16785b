//! Driver handles: streams and events.

/// A driver stream handle. 0 and 1 are the NULL stream; 2 is the calling thread's default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream(pub usize);

impl Stream {
    /// The calling thread's default stream.
    pub const PER_THREAD: Stream = Stream(2);

    /// Returns `true` if the handle refers to a different stream on every thread.
    pub fn is_per_thread(self) -> bool {
        self == Stream::PER_THREAD
    }

    /// Returns `true` for the NULL stream, which cannot be captured.
    pub fn is_legacy(self) -> bool {
        self.0 <= 1
    }

    /// Returns `true` if the handle does not identify a context.
    pub fn is_implicit(self) -> bool {
        self.0 <= 2
    }
}

/// A timing event.
///
/// Invariant: created by `Gpu::create_event`, and destroyed only by its owner, through
/// `Gpu::discard`. The driver destroys the remaining events along with their context.
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
