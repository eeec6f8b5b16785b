//! The GPU's progress on each stream, as shown by CUPTI's records.

use std::collections::HashMap;

use crate::types::stream_id::StreamId;

/// The maximum number of streams. When it is reached, all are forgotten.
const MAX_STREAMS: usize = 4_096;

/// The latest launch on each stream that has a record. All launches before it on that stream have ended.
pub(crate) struct StreamProgress {
    latest: Option<HashMap<StreamId, u64>>,
}

impl StreamProgress {
    pub const fn new() -> StreamProgress {
        StreamProgress { latest: None }
    }

    /// Notes that a launch has a record. `at` must grow from each launch on a stream to the next.
    pub fn note(&mut self, stream_id: Option<StreamId>, at: u64) {
        let Some(stream_id) = stream_id else { return };
        let latest = self.latest.get_or_insert_default();
        if latest.len() >= MAX_STREAMS && !latest.contains_key(&stream_id) {
            latest.clear();
        }
        let latest = latest.entry(stream_id).or_default();
        *latest = at.max(*latest);
    }

    /// Returns `true` if the GPU is known to have reached a launch on the stream that is later than the one at `at`.
    pub fn are_past(&self, stream_id: Option<StreamId>, at: u64) -> bool {
        let latest = stream_id.and_then(|stream_id| self.latest.as_ref()?.get(&stream_id));
        latest.is_some_and(|&latest| latest > at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::handles::Stream;

    fn stream_id(stream: usize, context: usize) -> Option<StreamId> {
        Some(StreamId::new(Stream(stream), context))
    }

    #[test]
    fn only_a_later_launch_on_the_same_stream_tells() {
        let mut progress = StreamProgress::new();
        progress.note(stream_id(0x70, 9), 20);
        progress.note(stream_id(0x70, 9), 10);
        progress.note(None, 90);
        assert!(
            progress.are_past(stream_id(0x70, 9), 19) && !progress.are_past(stream_id(0x70, 9), 20)
        );
        assert!(!progress.are_past(stream_id(0x71, 9), 5) && !progress.are_past(None, 5));
    }

    #[test]
    fn streams_are_bounded() {
        let mut progress = StreamProgress::new();
        (0..=MAX_STREAMS).for_each(|stream| progress.note(stream_id(0x70 + stream, 9), 20));
        assert_eq!(progress.latest.map(|latest| latest.len()), Some(1));
    }
}
