//! Tells which callsites keep their spans: created once, and entered for each call, as a model of candle
//! does with the spans of its layers.
//!
//! Nothing tells them from the span of a future, which is entered for each poll, but that they are entered
//! much more often than others are before they are closed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A span is kept if it is entered so many times more often than those that were closed.
const FACTOR: u32 = 8;
/// More entries than this are never taken for those of one call.
const MOST: u32 = 4_096;

/// The state of the spans of a callsite.
#[derive(Debug)]
pub(super) struct Kept {
    is_kept: AtomicBool,
    /// A span is kept if it has been entered more often than this.
    after: AtomicU32,
}

impl Kept {
    pub const fn new() -> Kept {
        Kept { is_kept: AtomicBool::new(false), after: AtomicU32::new(FACTOR) }
    }

    /// Returns `true` if each entry of such a span is a call.
    pub fn get(&self) -> bool {
        self.is_kept.load(Relaxed)
    }

    /// Notes that a span has been entered this many times, as far as was seen.
    pub fn note_entered(&self, entries: u32) {
        if entries > self.after.load(Relaxed) {
            self.is_kept.store(true, Relaxed);
        }
    }

    /// Notes that a span has been closed after this many entries, as far as was seen. If it was taken for
    /// one that is kept, the next one must be entered more often to be so.
    pub fn note_closed(&self, entries: u32) {
        let after = self.after.load(Relaxed);
        // When a model is dropped, only its first span counts.
        if self.is_kept.swap(false, Relaxed) {
            self.raise(after);
        } else if entries <= after {
            self.raise(entries);
        }
    }

    fn raise(&self, entries: u32) {
        self.after.fetch_max(entries.saturating_mul(FACTOR).min(MOST), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_that_is_entered_again_and_again_is_kept() {
        let kept = Kept::new();
        (1..=FACTOR).for_each(|entries| kept.note_entered(entries));
        assert!(!kept.get());
        kept.note_entered(FACTOR + 1);
        assert!(kept.get());
    }

    #[test]
    fn futures_with_many_polls_are_not_kept_for_long() {
        let kept = Kept::new();
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
        let kept = Kept::new();
        kept.note_entered(FACTOR + 1);
        // The spans of its layers.
        [1_000, 3, 900].into_iter().for_each(|entries| kept.note_closed(entries));
        assert!(!kept.get());
        // The next model.
        kept.note_entered(FACTOR * FACTOR);
        assert!(!kept.get());
        kept.note_entered(FACTOR * FACTOR + 1);
        assert!(kept.get());
    }
}
