//! Nesting of brackets on each stream: detects whether another bracket is open around, or inside, a
//! bracket.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::thread_id;
use crate::gpu::Gpu;
use crate::types::handles::Stream;

/// The maximum number of stream states per context, in addition to those with an open bracket.
const MAX_IDLE: usize = 4_096;

/// One open bracket, as counted in [`StreamState::word`].
const OPEN: u64 = 1;
/// The bits of the number of open brackets. A context has events for half as many.
const ALL_OPEN: u64 = (1 << 16) - 1;
/// The bits of the number of the thread that opened the last bracket, and of the number of times at which this was
/// another thread than before. Threads whose numbers differ by a multiple of 128 count as one.
const OPENER: u64 = ((1 << 7) - 1) << 16;
const SWITCH: u64 = 1 << 23;
const SWITCHES: u64 = ((1 << 9) - 1) << 23;
/// One bracket ever opened, as counted in [`StreamState::word`].
const OPENED: u64 = 1 << 32;

/// No bracket has more others inside that are all known to be of the same thread: beyond, the number of switches may
/// have wrapped around.
const MOST_INSIDE: u16 = 1 << 9;

/// Identifies a stream within its context: by its handle, or by the thread recorder if the handle
/// refers to a different stream on every thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey(u64);

impl StreamKey {
    /// Marks a thread recorder's address. No address has this bit set.
    const PER_THREAD: u64 = 1 << 63;
    /// The key for a state that belongs to no stream. It differs from every handle and recorder.
    const NONE: StreamKey = StreamKey(u64::MAX);

    pub fn new<R>(stream: Stream, thread: &R) -> StreamKey {
        StreamKey(if stream.is_per_thread() {
            ptr::from_ref(thread).addr() as u64 | StreamKey::PER_THREAD
        } else {
            stream.0 as u64
        })
    }
}

/// One stream's brackets, shared by all threads that use the stream, and by futures that move
/// between threads.
///
/// Invariant: the lowest bits of `word` count open brackets, the upper half all brackets ever opened, and those between
/// tell which threads opened them. A state keeps its stream while a bracket is open.
#[derive(Debug)]
pub(crate) struct StreamState {
    key: AtomicU64,
    word: AtomicU64,
}

/// The stream states for one context.
///
/// Invariant: each stream has one state, and each state has one stream. If there are too many
/// streams, states without an open bracket are reassigned. A thread may still hold a reference to a
/// reassigned state, which [`StreamState::open`] detects.
#[derive(Default)]
pub(crate) struct StreamStates {
    by_key: HashMap<StreamKey, &'static StreamState>,
    idle: Vec<&'static StreamState>,
}

/// A stream state's counts immediately after a bracket was opened, or before one was closed.
///
/// Invariant: made by [`StreamState::open`] or [`StreamState::close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NestingMark(u64);

impl NestingMark {
    /// Returns the number of event pairs recorded since an earlier mark. Returns `None` if the number of
    /// open brackets differs between the marks, so that some events have no counterpart inside, if another thread
    /// opened some, which may have enqueued their events in another order, or if there are too many to count.
    ///
    /// If the number of open brackets is the same, as many brackets were closed as opened. They need not
    /// be the same ones: one that was open before may have been closed, and another one opened. A bracket
    /// is lengthened by the events inside it, whichever brackets they belong to. A bracket that another thread had opened
    /// before, but enqueues its start only now, is not noticed.
    #[inline]
    pub fn opened_since(self, earlier: NestingMark) -> Option<u16> {
        let opened = self.openings_since(earlier);
        let differs = |bits| (self.0 ^ earlier.0) & bits != 0;
        let is_known = !differs(ALL_OPEN) && (opened == 0 || !differs(OPENER | SWITCHES));
        u16::try_from(opened).ok().filter(|opened| is_known && *opened < MOST_INSIDE)
    }

    /// Returns the number of brackets opened since an earlier mark.
    #[inline]
    pub fn openings_since(self, earlier: NestingMark) -> u32 {
        ((self.0 >> 32) as u32).wrapping_sub((earlier.0 >> 32) as u32)
    }

    /// Returns the number of openings and closings so far, which orders marks on one stream. It
    /// includes the mark's own opening, but not its own closing.
    #[inline]
    pub fn order(self) -> u32 {
        let (opened, open) = ((self.0 >> 32) as u32, (self.0 & ALL_OPEN) as u32);
        opened.wrapping_mul(2).wrapping_sub(open)
    }
}

/// Returns the word with one more bracket, which this thread opens.
fn counted(word: u64, opener: u64) -> u64 {
    let opened = word.wrapping_add(OPENED + OPEN);
    if word & OPENER == opener {
        return opened;
    }
    // Like that of the brackets, the number of switches may wrap around.
    let switches = (word & SWITCHES).wrapping_add(SWITCH) & SWITCHES;
    opened & !(OPENER | SWITCHES) | opener | switches
}

/// The streams of one context.
struct ContextStreams {
    /// The context's address.
    context: usize,
    is_gone: Box<dyn Fn() -> bool + Send>,
    states: StreamStates,
}

/// The streams of every context.
static STREAMS: Mutex<Vec<ContextStreams>> = Mutex::new(Rank::Streams, Vec::new());

/// Returns the state for a stream in this context.
pub(crate) fn state_of<G: Gpu>(gpu: &'static G, key: StreamKey) -> &'static StreamState {
    let context = ptr::from_ref(gpu).addr();
    let mut streams = locked(&STREAMS);
    let at = streams.iter().position(|known| known.context == context).unwrap_or_else(|| {
        // A program may create contexts again and again, so those that are gone are dropped.
        streams.retain(|known| !(known.is_gone)() || known.states.are_busy());
        let is_gone = Box::new(|| gpu.is_gone());
        streams.push(ContextStreams { context, is_gone, states: StreamStates::default() });
        streams.len() - 1
    });
    streams[at].states.get(key)
}

/// Returns `true` if any thread has an open bracket on any stream.
pub(crate) fn has_open() -> bool {
    locked(&STREAMS).iter().any(|known| known.states.are_busy())
}

impl StreamStates {
    /// Returns the state for a stream, reassigning an idle one if there are too many.
    pub fn get(&mut self, key: StreamKey) -> &'static StreamState {
        if let Some(state) = self.by_key.get(&key) {
            return state;
        }
        if self.by_key.len() >= MAX_IDLE && self.idle.is_empty() {
            let idle = &mut self.idle;
            self.by_key.retain(|key, state| {
                let is_released = state.release(*key);
                if is_released {
                    idle.push(state);
                }
                !is_released
            });
        }
        let state = self.idle.pop().unwrap_or_else(|| Box::leak(Box::new(StreamState::new(key))));
        state.key.store(key.0, SeqCst);
        self.by_key.insert(key, state);
        state
    }

    /// Returns `true` if a bracket is open on any stream.
    pub fn are_busy(&self) -> bool {
        self.by_key.values().any(|state| state.is_busy())
    }
}

impl StreamState {
    pub fn new(key: StreamKey) -> StreamState {
        StreamState { key: AtomicU64::new(key.0), word: AtomicU64::new(0) }
    }

    /// Returns `true` if the state belongs to this stream. Another thread may reassign it
    /// immediately afterwards, so only [`StreamState::open`] decides.
    #[inline]
    pub fn is_of(&self, key: StreamKey) -> bool {
        self.key.load(Relaxed) == key.0
    }

    /// Returns `true` if a bracket is open on the stream.
    pub fn is_busy(&self) -> bool {
        self.word.load(Acquire) & ALL_OPEN > 0
    }

    /// Opens a bracket. Must be called before its start is enqueued. Returns `None` if the state
    /// now belongs to another stream.
    ///
    /// This thread counts its bracket and then checks the key; [`StreamState::release`] removes the
    /// key and then checks the count. All four accesses are `SeqCst`, so at least one of the two
    /// threads sees the other, and a state with an open bracket is never reassigned.
    #[inline]
    pub fn open(&self, key: StreamKey) -> Option<NestingMark> {
        let opened = self.count();
        if self.key.load(SeqCst) == key.0 {
            return Some(opened);
        }
        self.close();
        None
    }

    /// The first step of [`StreamState::open`].
    #[inline]
    fn count(&self) -> NestingMark {
        let opener = thread_id::current() << OPENER.trailing_zeros() & OPENER;
        let mut word = self.word.load(Relaxed);
        loop {
            let opened = counted(word, opener);
            match self.word.compare_exchange_weak(word, opened, SeqCst, Relaxed) {
                Ok(_) => return NestingMark(opened),
                Err(now) => word = now,
            }
        }
    }

    /// Closes a bracket. Must be called after its stop has been enqueued. If the result differs
    /// from the mark that [`StreamState::open`] returned, another bracket's events may lie inside:
    /// a bracket opened since, or one that was open then and is now closed.
    #[inline]
    pub fn close(&self) -> NestingMark {
        NestingMark(self.word.fetch_sub(OPEN, SeqCst))
    }

    /// Removes the state from its stream, unless a bracket is open. See [`StreamState::open`] for
    /// the order of the steps.
    fn release(&self, key: StreamKey) -> bool {
        self.key.store(StreamKey::NONE.0, SeqCst);
        let is_idle = self.word.load(SeqCst) & ALL_OPEN == 0;
        if !is_idle {
            // A thread that found the state without its key waits for the lock on all states, then
            // finds this one again.
            self.key.store(key.0, SeqCst);
        }
        is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StreamKey = StreamKey(64);

    fn open(state: &StreamState) -> NestingMark {
        state.open(KEY).expect("the state is the stream's")
    }

    fn key(n: usize) -> StreamKey {
        StreamKey::new(Stream(64 * n), &())
    }

    #[test]
    fn inner_bracket_marks_outer_one() {
        let state = StreamState::new(KEY);
        assert!(!state.is_busy());
        let outer = open(&state);
        assert!(state.is_busy());
        let inner = open(&state);
        assert_eq!(state.close(), inner);
        assert_ne!(state.close(), outer);
        assert!(!state.is_busy());
        let next = open(&state);
        assert_eq!(state.close(), next);
    }

    #[test]
    fn overlapping_brackets_mark_each_other() {
        let state = StreamState::new(KEY);
        let first = open(&state);
        let second = open(&state);
        assert_ne!(state.close(), first);
        assert_ne!(state.close(), second);
    }

    /// Closes one bracket while another is open, opens `more`, and returns the number of event pairs inside the
    /// other.
    fn inside_of_overlapped(more: usize) -> Option<u16> {
        let state = StreamState::new(KEY);
        open(&state);
        let opened = open(&state);
        state.close(); // the first one
        (0..more).for_each(|_| _ = open(&state));
        state.close().opened_since(opened)
    }

    #[test]
    fn events_inside_count_in_pairs() {
        assert_eq!(inside_of_overlapped(0), None, "only a stop");
        assert_eq!(inside_of_overlapped(1), Some(1), "a stop and a start");
        assert_eq!(inside_of_overlapped(2), None, "a stop and two starts");
    }

    /// Another thread may have enqueued its events before the outer one's, or after.
    #[test]
    fn brackets_of_other_threads_inside_are_unknown() {
        let inside_of = |with_other: bool| {
            let state = StreamState::new(KEY);
            let outer = open(&state);
            for _ in 0..3 {
                open(&state);
                state.close();
            }
            if with_other {
                let other = || {
                    open(&state);
                    state.close();
                };
                std::thread::scope(|scope| scope.spawn(other).join().unwrap());
                open(&state);
                state.close();
            }
            let closed = state.close();
            assert_ne!(closed, outer);
            closed.opened_since(outer)
        };
        assert_eq!([inside_of(false), inside_of(true)], [Some(3), None]);
    }

    #[test]
    fn thread_that_takes_over_a_stream_knows_its_own_brackets() {
        let state = StreamState::new(KEY);
        std::thread::scope(|scope| _ = scope.spawn(|| (open(&state), state.close())).join());
        let outer = open(&state);
        (0..2).for_each(|_| _ = (open(&state), state.close()));
        assert_eq!(state.close().opened_since(outer), Some(2));
    }

    #[test]
    fn opens_and_closes_are_ordered() {
        let state = StreamState::new(KEY);
        // In order: outer, inner, inner's close, outer's close, another.
        let opened = [open(&state), open(&state)];
        let closed = [state.close(), state.close()];
        let next = open(&state);
        assert_eq!(opened.map(NestingMark::order), [1, 2]);
        assert_eq!(closed.map(|mark| mark.order() + 1), [3, 4]);
        assert_eq!(next.order(), 5);
    }

    #[test]
    fn per_thread_stream_has_a_key_for_each_thread() {
        let (this, that) = (1_u8, 2_u8);
        let key = |stream, thread| StreamKey::new(Stream(stream), thread);
        assert_eq!(key(64, &this), key(64, &that));
        assert_ne!(key(2, &this), key(2, &that));
        assert_ne!(key(2, &this), key(2 | ptr::from_ref(&this).addr(), &this));
    }

    /// The number of states is bounded however many streams come and go, and looking up the same
    /// stream twice finds the same state.
    #[test]
    fn states_are_bounded() {
        let mut states = StreamStates::default();
        let (busy, remembered) = (states.get(key(1)), states.get(key(2)));
        let opened = busy.open(key(1)).unwrap();
        let mut seen = std::collections::HashSet::from([ptr::from_ref(busy), remembered]);
        for n in 3..5 * MAX_IDLE {
            seen.insert(states.get(key(n)));
            assert!(ptr::eq(states.get(key(1)), busy) && states.are_busy());
        }
        assert!(seen.len() <= MAX_IDLE + 1, "{}", seen.len());
        assert!(busy.is_of(key(1)) && !remembered.is_of(key(2)));
        assert!(ptr::eq(states.get(key(2)), states.get(key(2))));
        assert_eq!(busy.close(), opened);
    }

    #[test]
    fn reassigned_state_is_not_opened() {
        let mut states = StreamStates::default();
        let remembered = states.get(key(1));
        (2..=MAX_IDLE + 1).for_each(|n| _ = states.get(key(n)));
        let owner = (2..=MAX_IDLE + 1).map(key).find(|key| remembered.is_of(*key));
        assert_eq!(remembered.open(key(1)), None);
        assert!(!remembered.is_busy());
        assert!(owner.is_none_or(|owner| remembered.open(owner).is_some()));
    }

    /// The steps of [`StreamState::open`] and [`StreamState::release`] in each order.
    #[test]
    fn open_and_release_see_each_other() {
        let state = StreamState::new(KEY);
        // Counted before the key is removed, so the state stays with its stream.
        let opened = state.count();
        assert!(!state.release(KEY));
        assert!(state.is_of(KEY));
        assert_eq!(state.close(), opened);
        // Counted between the two steps of the release, so both give way.
        state.key.store(StreamKey::NONE.0, SeqCst);
        assert_eq!(state.open(KEY), None);
        state.key.store(KEY.0, SeqCst);
        // `open` counts after the release, when the state no longer has this stream's key.
        assert!(state.release(KEY));
        assert_eq!(state.open(KEY), None);
        assert!(!state.is_busy());
    }

    #[test]
    fn state_with_open_bracket_is_not_reassigned() {
        let states = Mutex::new(Rank::Streams, StreamStates::default());
        let get = |n| locked(&states).get(key(n));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    for n in 0..4 * MAX_IDLE {
                        let n = 1 + (2 * n + thread) % (2 * MAX_IDLE);
                        let remembered = get(n);
                        if remembered.open(key(n)).is_some() {
                            assert!(ptr::eq(get(n), remembered));
                            remembered.close();
                        }
                    }
                });
            }
        });
    }
}
