//! A stream as the brackets on it meet it: whether one lies inside another.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use crate::gpu::Stream;

const OPEN: u64 = 1;
const BEGUN: u64 = 1 << 32;

/// One stream of one context. Threads that share the stream share this, and so does a future that
/// moves between threads.
///
/// Invariant: the lower half of the word counts the brackets that are open, the upper half those that
/// were ever begun.
#[derive(Debug)]
pub(crate) struct Track {
    pub stream: Stream,
    word: AtomicU64,
}

/// What the track was like when a bracket began, or just before it ended.
///
/// Invariant: made by [`Track::begin`] or [`Track::end`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// How often a bracket had begun or ended on the track by then, the one that begins among them and the
    /// one that ends not.
    pub fn order(self) -> u32 {
        let (begun, open) = ((self.0 >> 32) as u32, self.0 as u32);
        begun.wrapping_mul(2).wrapping_sub(open)
    }
}

impl Track {
    pub fn new(stream: Stream) -> Track {
        Track { stream, word: AtomicU64::new(0) }
    }

    /// Whether a bracket is open around whatever is enqueued now.
    pub fn is_busy(&self) -> bool {
        self.word.load(Acquire) as u32 > 0
    }

    /// Opens a bracket; to be called before its start is enqueued.
    #[inline]
    pub fn begin(&self) -> Mark {
        let opened = BEGUN + OPEN;
        Mark(self.word.fetch_add(opened, AcqRel).wrapping_add(opened))
    }

    /// Closes a bracket; to be called after its stop was enqueued. Events of another may lie inside, of
    /// one that has begun since or has ended, unless the answer is that of [`Track::begin`].
    #[inline]
    pub fn end(&self) -> Mark {
        Mark(self.word.fetch_sub(OPEN, AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_bracket_knows_of_the_inner_one() {
        let track = Track::new(Stream(64));
        assert!(!track.is_busy());
        let outer = track.begin();
        assert!(track.is_busy());
        let inner = track.begin();
        assert_eq!(track.end(), inner);
        assert_ne!(track.end(), outer);
        assert!(!track.is_busy());
        let next = track.begin();
        assert_eq!(track.end(), next);
    }

    #[test]
    fn brackets_that_overlap_know_of_each_other() {
        let track = Track::new(Stream(64));
        let first = track.begin();
        let second = track.begin();
        assert_ne!(track.end(), first);
        assert_ne!(track.end(), second);
    }

    #[test]
    fn what_begins_and_ends_on_a_track_has_an_order() {
        let track = Track::new(Stream(64));
        // Outer, inner, its end, outer's end, another.
        let begun = [track.begin(), track.begin()];
        let ended = [track.end(), track.end()];
        let next = track.begin();
        assert_eq!(begun.map(Mark::order), [1, 2]);
        assert_eq!(ended.map(|mark| mark.order() + 1), [3, 4]);
        assert_eq!(next.order(), 5);
    }
}
