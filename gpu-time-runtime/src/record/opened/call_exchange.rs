//! Opened calls on their way from the threads that made them to the collector, and back for reuse.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::record::opened::open_call::OpenCall;

/// The maximum number of calls that have ended since the last collection. Further ones are counted
/// as lost.
const MAX_ENDED: usize = 65_536;
/// The maximum number of frames, launches and records of the calls that have ended since the last collection, and
/// of those that wait. A frame takes about 250 bytes, and each of the others about 100.
pub(in crate::record) const MAX_WAITING_WORK: usize = 1 << 20;
/// The maximum memory of idle calls that are kept for reuse. Enough for all small calls that wait for a flush:
/// memory that one thread allocates and another one frees, over and over, is scattered.
const MAX_IDLE_BYTES: usize = 8 << 20;

struct CallExchange {
    ended: Mutex<Ended>,
    idle: Mutex<IdleCalls>,
    /// The number of calls that have ended and are not recorded in their series yet.
    waiting: AtomicU64,
}

static CALLS: LazyLock<CallExchange> = LazyLock::new(|| CallExchange {
    ended: Mutex::new(Rank::EndedCalls, Ended::default()),
    idle: Mutex::new(Rank::IdleCalls, IdleCalls::default()),
    waiting: AtomicU64::new(0),
});

/// Calls that have ended since the last collection.
#[derive(Default)]
pub(in crate::record) struct Ended {
    #[allow(clippy::vec_box, reason = "threads hold their calls as boxes")]
    pub calls: Vec<Box<OpenCall>>,
    /// The number of their frames and launches.
    work: usize,
    /// Those that there was no room for, as far as there is room for these.
    pub refused: Vec<Refused>,
}

/// A call, or a part of one, that there was no room for.
pub(crate) struct Refused {
    /// The number of the call.
    pub call: u64,
    /// Other parts follow.
    pub goes_on: bool,
}

impl Ended {
    /// Adds a call, or returns it if there are too many. Returns `true` if it is the first.
    fn add(&mut self, call: Box<OpenCall>) -> Result<bool, Box<OpenCall>> {
        let work = self.work + call.work();
        if self.calls.len() >= MAX_ENDED || work > MAX_WAITING_WORK {
            if self.refused.len() < MAX_ENDED {
                let goes_on = call.frames.iter().any(|frame| frame.goes_on);
                self.refused.push(Refused { call: call.number, goes_on });
            }
            return Err(call);
        }
        self.work = work;
        self.calls.push(call);
        Ok(self.calls.len() == 1)
    }

    /// Moves everything to `empty`, whose memory takes the place of theirs.
    fn take(&mut self, empty: &mut Ended) {
        std::mem::swap(self, empty);
        self.work = 0;
    }
}

/// Empty calls that can be used again.
#[derive(Default)]
struct IdleCalls {
    #[allow(clippy::vec_box, reason = "threads hold their calls as boxes")]
    calls: Vec<Box<OpenCall>>,
    /// The memory that they have, in bytes.
    bytes: usize,
}

impl IdleCalls {
    fn take(&mut self) -> Option<Box<OpenCall>> {
        let call = self.calls.pop()?;
        self.bytes -= call.bytes();
        Some(call)
    }

    /// Keeps a call, with as much of its memory as there is room for beside the others. Drops it if even a small call
    /// would be too much.
    fn keep(&mut self, mut call: Box<OpenCall>) {
        if self.bytes + call.bytes() > MAX_IDLE_BYTES {
            call.shrink();
        }
        let bytes = self.bytes + call.bytes();
        if bytes <= MAX_IDLE_BYTES {
            self.bytes = bytes;
            self.calls.push(call);
        }
    }
}

/// Adds a call that has ended, or returns it if too many have. Returns `true` if it is the first since the last
/// collection.
pub(in crate::record) fn add_ended(call: Box<OpenCall>) -> Result<bool, Box<OpenCall>> {
    CALLS.waiting.fetch_add(1, Relaxed);
    locked(&CALLS.ended).add(call)
}

/// Moves the calls that have ended since the last time to `empty`.
pub(in crate::record) fn take_ended(empty: &mut Ended) {
    locked(&CALLS.ended).take(empty);
}

/// Returns the number of calls that have ended and are not recorded yet.
pub(in crate::record) fn waiting() -> u64 {
    CALLS.waiting.load(Relaxed)
}

/// Returns an empty call, if possible one that is idle.
pub(in crate::record) fn take_idle() -> Box<OpenCall> {
    locked(&CALLS.idle).take().unwrap_or_default()
}

/// Takes a call back that has been recorded or lost.
pub(in crate::record) fn give_back(mut call: Box<OpenCall>) {
    // Tests give back calls that were never added.
    _ = CALLS.waiting.fetch_update(Relaxed, Relaxed, |waiting| waiting.checked_sub(1));
    call.clear();
    locked(&CALLS.idle).keep(call);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::opened::tests;

    fn call(frames: usize) -> Box<OpenCall> {
        let mut call = Box::<OpenCall>::default();
        call.frames.reserve(frames);
        call
    }

    #[test]
    fn idle_calls_are_bounded_by_their_memory() {
        let mut idle = IdleCalls::default();
        let each = call(200).bytes();
        for _ in 0..MAX_IDLE_BYTES / each + 10 {
            idle.keep(call(200));
        }
        assert_eq!(
            (idle.calls.len(), idle.bytes),
            (MAX_IDLE_BYTES / each, MAX_IDLE_BYTES / each * each)
        );
        // A smaller one still fits in the room of one that is taken.
        assert_eq!(idle.take().map(|call| call.bytes()), Some(each));
        idle.keep(call(0));
        assert_eq!(idle.calls.len(), MAX_IDLE_BYTES / each);
        while idle.take().is_some() {}
        assert_eq!(idle.bytes, 0);
    }

    /// Otherwise, a function with many inner calls would allocate in each of its calls.
    #[test]
    fn idle_call_keeps_memory_while_there_is_room() {
        let mut idle = IdleCalls::default();
        idle.keep(call(15_000));
        assert!(idle.take().is_some_and(|call| call.frames.capacity() >= 15_000));
        idle.keep(call(30_000));
        idle.keep(call(15_000));
        let second = idle.take().unwrap().frames.capacity();
        assert!(second < 15_000, "there was no room for {second}");
        assert!(idle.take().is_some_and(|call| call.frames.capacity() >= 30_000));
    }

    /// Each takes more memory than a launch, and most calls inside others launch nothing.
    #[test]
    fn ended_calls_are_bounded_by_their_frames() {
        let with_frames = |count| {
            let mut call = tests::call(tests::subject(tests::thread()), &[]);
            let frame = call.frames[0].clone();
            call.frames.resize(count, frame);
            call
        };
        let mut ended = Ended { work: MAX_WAITING_WORK - 10, ..Ended::default() };
        assert!(ended.add(with_frames(11)).is_err());
        assert!(ended.add(with_frames(8)).is_ok());
        assert!(ended.add(with_frames(3)).is_err());
    }

    #[test]
    fn memory_of_the_list_of_ended_calls_is_reused() {
        let mut ended = Ended::default();
        let mut taken = Ended { calls: Vec::with_capacity(100), ..Ended::default() };
        assert_eq!(ended.add(call(0)).ok(), Some(true));
        assert_eq!(ended.add(call(0)).ok(), Some(false));
        ended.take(&mut taken);
        assert_eq!((taken.calls.len(), ended.calls.len(), ended.work), (2, 0, 0));
        assert!(ended.calls.capacity() >= 100);
        assert_eq!(ended.add(call(0)).ok(), Some(true));
    }
}
