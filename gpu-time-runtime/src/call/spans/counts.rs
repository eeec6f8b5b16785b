//! Counts spans by state, so that the layer's callbacks return at once while they have nothing to do.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Spans that have a `SpanState`.
pub(super) static PARTS: Count = Count::new();
/// Spans with a suspended call, which continues when any thread enters them.
pub(super) static SUSPENDED: Count = Count::new();
/// Spans whose next entry matters if it is the outermost on its thread: it opens a call, or is
/// counted to detect kept spans.
pub(super) static EXPECTED: Count = Count::new();
/// Chosen roots that have not been closed. Any thread may enter the spans inside them.
pub(super) static LIVE: Count = Count::new();

/// The number of spans in one state.
pub(super) struct Count(AtomicUsize);

impl Count {
    const fn new() -> Count {
        Count(AtomicUsize::new(0))
    }

    /// Returns `true` if any span is in this state.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    /// Counts a span until the returned value is dropped.
    pub fn count(&'static self) -> CountGuard {
        self.0.fetch_add(1, Relaxed);
        CountGuard(self)
    }
}

/// A span in a [`Count`], removed on drop.
pub(super) struct CountGuard(&'static Count);

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
