//! A stream as the brackets on it meet it: whether one lies inside another.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::types::handles::Stream;

/// Streams that a context keeps apart at once, beside those that have a bracket open.
const MOST: usize = 4_096;

const OPEN: u64 = 1;
const BEGUN: u64 = 1 << 32;

/// What a context knows a stream by: its handle; but where that means another stream on every thread, the
/// lane, which one thread at a time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey(u64);

impl StreamKey {
    /// No address has this bit.
    const LANE: u64 = 1 << 63;

    pub fn new<L>(stream: Stream, thread: &L) -> StreamKey {
        StreamKey(if stream.is_per_thread() {
            ptr::from_ref(thread).addr() as u64 | StreamKey::LANE
        } else {
            stream.0 as u64
        })
    }
}

/// One stream of one context. Threads that share the stream share this, and so does a future that
/// moves between threads.
///
/// Invariant: the lower half of the word counts the brackets that are open, the upper half those that
/// were ever begun. While one is open the track stays with its stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    key: AtomicU64,
    word: AtomicU64,
}

/// The tracks of one context.
///
/// Invariant: a stream has one, and a track one stream. Where there have been too many streams, those
/// without an open bracket give theirs up for the next ones: who remembers a track asks it whose it is.
#[derive(Default)]
pub(crate) struct StreamStates {
    by_key: HashMap<StreamKey, &'static StreamState>,
    idle: Vec<&'static StreamState>,
}

/// What the track was like when a bracket began, or just before it ended.
///
/// Invariant: made by [`StreamState::begin`] or [`StreamState::end`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// How often a bracket had begun or ended on the track by then, the one that begins among them and the
    /// one that ends not.
    #[inline]
    pub fn order(self) -> u32 {
        let (begun, open) = ((self.0 >> 32) as u32, self.0 as u32);
        begun.wrapping_mul(2).wrapping_sub(open)
    }

    /// Whether a bracket that began so began after one of the same track had ended so.
    #[inline]
    pub fn is_after(self, ended: Mark) -> bool {
        self.order().wrapping_sub(ended.order()).cast_signed() > 0
    }
}

/// The streams of every context, by the context's address.
static STREAMS: Mutex<Vec<(usize, StreamStates)>> = Mutex::new(Rank::Streams, Vec::new());

/// The state of a stream of this context.
pub(crate) fn state_of<G>(gpu: &'static G, key: StreamKey) -> &'static StreamState {
    let context = ptr::from_ref(gpu).addr();
    let mut streams = locked(&STREAMS);
    let at = streams.iter().position(|(known, _)| *known == context).unwrap_or_else(|| {
        streams.push((context, StreamStates::default()));
        streams.len() - 1
    });
    streams[at].1.get(key)
}

/// Returns `true` if a bracket is open on any stream, by any thread.
pub(crate) fn has_open() -> bool {
    locked(&STREAMS).iter().any(|(_, streams)| streams.are_busy())
}

impl StreamStates {
    /// The stream's.
    pub fn get(&mut self, key: StreamKey) -> &'static StreamState {
        if let Some(stream_state) = self.by_key.get(&key) {
            return stream_state;
        }
        if self.by_key.len() >= MOST && self.idle.is_empty() {
            let idle = &mut self.idle;
            self.by_key.retain(|_, stream_state| {
                let is_busy = stream_state.is_busy();
                if !is_busy {
                    // In the same breath, so that nobody takes it for the stream's any more.
                    stream_state.key.store(u64::MAX, Relaxed);
                    idle.push(stream_state);
                }
                is_busy
            });
        }
        let stream_state =
            self.idle.pop().unwrap_or_else(|| Box::leak(Box::new(StreamState::new(key))));
        stream_state.key.store(key.0, Relaxed);
        self.by_key.insert(key, stream_state);
        stream_state
    }

    /// Whether a bracket is open on any.
    pub fn are_busy(&self) -> bool {
        self.by_key.values().any(|stream_state| stream_state.is_busy())
    }
}

impl StreamState {
    pub fn new(key: StreamKey) -> StreamState {
        StreamState { key: AtomicU64::new(key.0), word: AtomicU64::new(0) }
    }

    /// Whether it is this stream's.
    #[inline]
    pub fn is_of(&self, key: StreamKey) -> bool {
        self.key.load(Relaxed) == key.0
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
    /// one that has begun since or has ended, unless the answer is that of [`StreamState::begin`].
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
        let stream_state = StreamState::new(StreamKey(64));
        assert!(!stream_state.is_busy());
        let outer = stream_state.begin();
        assert!(stream_state.is_busy());
        let inner = stream_state.begin();
        assert_eq!(stream_state.end(), inner);
        assert_ne!(stream_state.end(), outer);
        assert!(!stream_state.is_busy());
        let next = stream_state.begin();
        assert_eq!(stream_state.end(), next);
    }

    #[test]
    fn a_stream_of_every_thread_has_a_track_for_each_lane() {
        let (this, that) = (1_u8, 2_u8);
        let key = |stream, thread| StreamKey::new(Stream(stream), thread);
        assert_eq!(key(64, &this), key(64, &that));
        assert_ne!(key(2, &this), key(2, &that));
        assert_ne!(key(2, &this), key(2 | ptr::from_ref(&this).addr(), &this));
    }

    /// However many streams come and go, there are so many tracks and no more; and two that ask for one
    /// stream get one.
    #[test]
    fn tracks_are_bounded() {
        let mut tracks = StreamStates::default();
        let key = |n: usize| StreamKey::new(Stream(64 * n), &());
        let (busy, remembered) = (tracks.get(key(1)), tracks.get(key(2)));
        let begun = busy.begin();
        let mut seen = std::collections::HashSet::from([ptr::from_ref(busy), remembered]);
        for n in 3..5 * MOST {
            seen.insert(tracks.get(key(n)));
            assert!(ptr::eq(tracks.get(key(1)), busy) && tracks.are_busy());
        }
        assert!(seen.len() <= MOST + 1, "{}", seen.len());
        assert!(busy.is_of(key(1)) && !remembered.is_of(key(2)));
        assert!(ptr::eq(tracks.get(key(2)), tracks.get(key(2))));
        assert_eq!(busy.end(), begun);
    }

    #[test]
    fn brackets_that_overlap_know_of_each_other() {
        let stream_state = StreamState::new(StreamKey(64));
        let first = stream_state.begin();
        let second = stream_state.begin();
        assert_ne!(stream_state.end(), first);
        assert_ne!(stream_state.end(), second);
    }

    #[test]
    fn what_begins_and_ends_on_a_track_has_an_order() {
        let stream_state = StreamState::new(StreamKey(64));
        // Outer, inner, its end, outer's end, another.
        let begun = [stream_state.begin(), stream_state.begin()];
        let ended = [stream_state.end(), stream_state.end()];
        let next = stream_state.begin();
        assert_eq!(begun.map(Mark::order), [1, 2]);
        assert_eq!(ended.map(|mark| mark.order() + 1), [3, 4]);
        assert_eq!(next.order(), 5);
        assert!(next.is_after(ended[0]) && next.is_after(ended[1]));
        assert!(!begun[0].is_after(ended[0]) && !begun[1].is_after(ended[0]));
    }
}
