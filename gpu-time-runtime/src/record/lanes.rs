//! How far the GPU has come on each stream, by the records of CUPTI.

use std::collections::HashMap;

use crate::base::thread_id;
use crate::types::activity::EnqueueCall;
use crate::types::handles::Stream;

/// The maximum number of streams. When it is reached, all are forgotten.
const MOST: usize = 4_096;

/// A stream, as opposed to its handle: those of the default streams are shared by many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    /// The handle or, for a default stream, that of its context.
    handle: usize,
    /// The number of the thread, for a per-thread default stream.
    thread: u64,
}

/// The latest launch with a record on each stream. All earlier launches on that stream have ended.
pub(crate) struct Lanes {
    latest: Option<HashMap<Lane, u64>>,
}

impl Lane {
    /// Returns the stream of a launch by the calling thread, if it is known.
    pub fn of(launched: &EnqueueCall) -> Option<Lane> {
        let stream = Stream(launched.stream?);
        let handle = if stream.is_implicit() { launched.context } else { stream.0 };
        let thread = if stream.is_per_thread() { thread_id::current() } else { 0 };
        Some(Lane { handle, thread })
    }
}

impl Lanes {
    pub const fn new() -> Lanes {
        Lanes { latest: None }
    }

    /// Notes that a launch has a record. `at` grows from one launch on a stream to the next.
    pub fn note(&mut self, lane: Option<Lane>, at: u64) {
        let Some(lane) = lane else { return };
        let latest = self.latest.get_or_insert_default();
        if latest.len() >= MOST && !latest.contains_key(&lane) {
            latest.clear();
        }
        let latest = latest.entry(lane).or_default();
        *latest = at.max(*latest);
    }

    /// Returns `true` if the GPU is known to have gone on from a launch to a later one.
    pub fn are_past(&self, lane: Option<Lane>, at: u64) -> bool {
        let latest = lane.and_then(|lane| self.latest.as_ref()?.get(&lane));
        latest.is_some_and(|&latest| latest > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(stream: usize, context: usize) -> Option<Lane> {
        Lane::of(&EnqueueCall {
            correlation: 1,
            context,
            stream: Some(stream),
            capture: None,
            is_graph: false,
            lacks_records: false,
        })
    }

    #[test]
    fn default_streams_are_told_apart() {
        assert_eq!(lane(0x70, 9), lane(0x70, 10));
        assert_eq!(lane(0, 9), lane(1, 9));
        assert_ne!(lane(0, 9), lane(0, 10));
        assert_ne!(lane(2, 9), lane(0, 9));
        assert_ne!(lane(2, 9), std::thread::spawn(|| lane(2, 9)).join().unwrap());
    }

    #[test]
    fn only_a_later_launch_on_the_same_stream_tells() {
        let mut lanes = Lanes::new();
        lanes.note(lane(0x70, 9), 20);
        lanes.note(lane(0x70, 9), 10);
        lanes.note(None, 90);
        assert!(lanes.are_past(lane(0x70, 9), 19) && !lanes.are_past(lane(0x70, 9), 20));
        assert!(!lanes.are_past(lane(0x71, 9), 5) && !lanes.are_past(None, 5));
    }

    #[test]
    fn streams_are_bounded() {
        let mut lanes = Lanes::new();
        (0..=MOST).for_each(|stream| lanes.note(lane(0x70 + stream, 9), 20));
        assert_eq!(lanes.latest.map(|latest| latest.len()), Some(1));
    }
}
