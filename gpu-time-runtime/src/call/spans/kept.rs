//! Whether the spans of a callsite are kept: created once, and entered for each call, as a model of candle
//! does with the spans of its layers.
//!
//! Nothing tells them from the span of a future, which is entered for each poll, but that they are entered
//! much more often than others are before they are closed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Spans that were closed were entered at most this much less often than one that is kept.
const FACTOR: u32 = 8;
const MOST: u32 = 1 << 20;

/// What is known of the spans of a callsite.
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

    /// Notes that a span has been entered so often, as far as was seen.
    pub fn note_entered(&self, entries: u32) {
        if entries > self.after.load(Relaxed) {
            self.is_kept.store(true, Relaxed);
        }
    }

    /// Notes that a span that was entered so often has been closed. If it was taken for one that is
    /// kept, the next one must be entered more often to be so.
    pub fn note_closed(&self, entries: u32) {
        let seen = if self.is_kept.swap(false, Relaxed) {
            entries.max(self.after.load(Relaxed))
        } else {
            entries
        };
        self.after.fetch_max(seen.saturating_mul(FACTOR).min(MOST), Relaxed);
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
    fn futures_with_many_polls_are_not_kept() {
        let kept = Kept::new();
        for polls in [2, 30, 200] {
            (1..=polls).for_each(|entries| kept.note_entered(entries));
            kept.note_closed(polls);
            assert!(!kept.get(), "{polls}");
        }
        kept.note_entered(FACTOR * 200);
        assert!(!kept.get());
        kept.note_entered(FACTOR * 200 + 1);
        assert!(kept.get());
    }

    #[test]
    fn mistake_needs_more_entries_the_next_time() {
        let kept = Kept::new();
        kept.note_entered(FACTOR + 1);
        // Of most entries of a kept span nothing is seen.
        kept.note_closed(1);
        assert!(!kept.get());
        kept.note_entered(FACTOR * FACTOR);
        assert!(!kept.get());
        kept.note_entered(FACTOR * FACTOR + 1);
        assert!(kept.get());
    }
}
