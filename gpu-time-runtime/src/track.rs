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

/// What the track was like when a bracket began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun(u64);

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
    pub fn begin(&self) -> Begun {
        let opened = BEGUN + OPEN;
        Begun(self.word.fetch_add(opened, AcqRel).wrapping_add(opened))
    }

    /// Closes a bracket; to be called after its stop was enqueued. Answers whether events of another
    /// may lie inside: one that has begun since, or has ended.
    #[inline]
    pub fn end(&self, begun: Begun) -> bool {
        Begun(self.word.fetch_sub(OPEN, AcqRel)) != begun
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
        assert!(!track.end(inner));
        assert!(track.end(outer));
        assert!(!track.is_busy());
        let next = track.begin();
        assert!(!track.end(next));
    }

    #[test]
    fn brackets_that_overlap_know_of_each_other() {
        let track = Track::new(Stream(64));
        let first = track.begin();
        let second = track.begin();
        assert!(track.end(first));
        assert!(track.end(second));
    }
}
