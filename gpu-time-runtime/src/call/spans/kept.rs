//! Detects *kept* spans, which a program creates once and enters for every call, as candle's models do for their
//! layers.
//!
//! The span of a future is also entered several times, once per poll. The only difference is that a kept span is
//! entered many more times before it is closed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A span counts as kept once it has been entered more than this many times as often as the spans closed before
/// it.
const FACTOR: u32 = 8;
/// A span with more entries than this always counts as kept.
const MAX_ENTRIES: u32 = 4_096;

/// Detects whether the spans of one callsite are kept.
#[derive(Debug)]
pub(super) struct KeepDetector {
    is_kept: AtomicBool,
    /// The number of entries above which a span counts as kept.
    after: AtomicU32,
}

impl KeepDetector {
    pub const fn new() -> KeepDetector {
        KeepDetector { is_kept: AtomicBool::new(false), after: AtomicU32::new(FACTOR) }
    }

    /// Returns `true` if the callsite's spans are kept, so that each entry is a call.
    pub fn get(&self) -> bool {
        self.is_kept.load(Relaxed)
    }

    /// Notes that a span has been entered `entries` times, as far as the layer has seen.
    pub fn note_entered(&self, entries: u32) {
        if entries > self.after.load(Relaxed) {
            self.is_kept.store(true, Relaxed);
        }
    }

    /// Notes that a span has been closed after `entries` entries, as far as the layer has seen. If it counted as
    /// kept, later spans must be entered more often to count as kept.
    pub fn note_closed(&self, entries: u32) {
        let after = self.after.load(Relaxed);
        // A dropped model closes all its spans. Only the first of them counts as kept.
        if self.is_kept.swap(false, Relaxed) {
            self.raise(after);
        } else if entries <= after {
            self.raise(entries);
        }
    }

    fn raise(&self, entries: u32) {
        self.after.fetch_max(entries.saturating_mul(FACTOR).min(MAX_ENTRIES), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_that_is_entered_again_and_again_is_kept() {
        let kept = KeepDetector::new();
        (1..=FACTOR).for_each(|entries| kept.note_entered(entries));
        assert!(!kept.get());
        kept.note_entered(FACTOR + 1);
        assert!(kept.get());
    }

    #[test]
    fn futures_with_many_polls_are_not_kept_for_long() {
        let kept = KeepDetector::new();
        let polled = |polls| {
            (1..=polls).for_each(|entries| kept.note_entered(entries));
            let was_kept = kept.get();
            kept.note_closed(polls);
            was_kept
        };
        let were_kept = [2, 16, 200, 1_000, 5_000, 4_000].map(polled);
        assert_eq!(were_kept, [false, false, true, false, true, false]);
        assert!(!kept.get());
    }

    #[test]
    fn spans_of_a_dropped_model_count_once() {
        let kept = KeepDetector::new();
        kept.note_entered(FACTOR + 1);
        // Dropping the model closes the spans of its layers.
        [1_000, 3, 900].into_iter().for_each(|entries| kept.note_closed(entries));
        assert!(!kept.get());
        // The spans of the next model.
        kept.note_entered(FACTOR * FACTOR);
        assert!(!kept.get());
        kept.note_entered(FACTOR * FACTOR + 1);
        assert!(kept.get());
    }
}
