//! The GPU's progress on each stream, as shown by CUPTI's records.

use std::collections::HashMap;

use crate::types::stream_id::StreamId;

/// The maximum number of streams. When it is reached, all are forgotten.
const MAX_STREAMS: usize = 4_096;

/// The latest launch on each stream that has a record. All launches before it on that stream have ended.
///
/// The order of launches is that of their correlation ids: CUPTI numbers the calls to the driver one by one.
#[derive(Default)]
pub(crate) struct StreamProgress {
    latest: HashMap<StreamId, u32>,
}

impl StreamProgress {
    /// Notes that the launch with this correlation id has a record.
    pub fn note(&mut self, stream_id: Option<StreamId>, correlation: u32) {
        let Some(stream_id) = stream_id else { return };
        let latest = &mut self.latest;
        if latest.len() >= MAX_STREAMS && !latest.contains_key(&stream_id) {
            latest.clear();
        }
        let latest = latest.entry(stream_id).or_insert(correlation);
        if is_later(correlation, *latest) {
            *latest = correlation;
        }
    }

    /// Returns `true` if the GPU is known to have reached a launch on the stream that is later than this one.
    pub fn are_past(&self, stream_id: Option<StreamId>, correlation: u32) -> bool {
        let latest = stream_id.and_then(|stream_id| self.latest.get(&stream_id));
        latest.is_some_and(|&latest| is_later(latest, correlation))
    }
}

/// Compares correlation ids, which wrap around.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
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
        let mut progress = StreamProgress::default();
        progress.note(stream_id(0x70, 9), 20);
        progress.note(stream_id(0x70, 9), 10);
        progress.note(None, 90);
        assert!(
            progress.are_past(stream_id(0x70, 9), 19) && !progress.are_past(stream_id(0x70, 9), 20)
        );
        assert!(!progress.are_past(stream_id(0x71, 9), 5) && !progress.are_past(None, 5));
    }

    #[test]
    fn correlation_ids_wrap_around() {
        let mut progress = StreamProgress::default();
        let id = stream_id(0x70, 9);
        progress.note(id, u32::MAX);
        assert!(!progress.are_past(id, 3));
        progress.note(id, 4);
        assert!(progress.are_past(id, 3) && progress.are_past(id, u32::MAX));
    }

    #[test]
    fn streams_are_bounded() {
        let mut progress = StreamProgress::default();
        (0..=MAX_STREAMS).for_each(|stream| progress.note(stream_id(0x70 + stream, 9), 20));
        assert_eq!(progress.latest.len(), 1);
    }
}
