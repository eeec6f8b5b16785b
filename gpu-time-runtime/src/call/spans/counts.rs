//! The numbers of spans that matter to the layer. Its callbacks return at once where there are none.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The spans that have a state.
pub(super) static PARTS: Count = Count::new();
/// The spans with a suspended call, which goes on when they are entered, on any thread.
pub(super) static SUSPENDED: Count = Count::new();
/// The spans whose entry matters if no other one is entered: to open a call, or to be counted.
pub(super) static EXPECTED: Count = Count::new();
/// The chosen roots that have not been closed, whose spans inside may be entered on any thread.
pub(super) static LIVE: Count = Count::new();

pub(super) struct Count(AtomicUsize);

impl Count {
    const fn new() -> Count {
        Count(AtomicUsize::new(0))
    }

    /// Returns `true` if there is any span of this kind.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }

    /// Counts a span until the value that this returns is dropped.
    pub fn count(&'static self) -> Counted {
        self.0.fetch_add(1, Relaxed);
        Counted(self)
    }
}

/// A span that is counted.
pub(super) struct Counted(&'static Count);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
