//! The identity of a stream.

use crate::base::thread_id;
use crate::types::activity::EnqueueCall;
use crate::types::handles::Stream;

/// The identity of a stream. A handle is not enough, because the default streams have the same handles in all
/// contexts and on all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamId {
    /// 0 for the legacy default stream.
    stream: Stream,
    /// The handle of the context, for a default stream.
    context: usize,
    /// The number of the thread, for a per-thread default stream.
    thread: u64,
}

impl StreamId {
    /// Identifies a stream of a context by the handle that the calling thread uses.
    pub fn new(stream: Stream, context: usize) -> StreamId {
        StreamId {
            stream: if stream.is_legacy() { Stream(0) } else { stream },
            context: if stream.is_implicit() { context } else { 0 },
            thread: if stream.is_per_thread() { thread_id::current() } else { 0 },
        }
    }

    /// Returns the stream of a launch by the calling thread, if it is known.
    pub fn of(launched: &EnqueueCall) -> Option<StreamId> {
        Some(StreamId::new(Stream(launched.stream?), launched.context))
    }

    pub fn handle(self) -> Stream {
        self.stream
    }

    /// Returns `true` if a function that names this stream also names `other`. A function that names a per-thread
    /// default stream and moves to another thread then names the stream of that thread.
    pub fn names(self, other: StreamId) -> bool {
        (self.stream, self.context) == (other.stream, other.context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(stream: usize, context: usize) -> StreamId {
        StreamId::new(Stream(stream), context)
    }

    #[test]
    fn default_streams_are_told_apart() {
        assert_eq!(id(0x70, 9), id(0x70, 10));
        assert_eq!(id(0, 9), id(1, 9));
        assert_ne!(id(0, 9), id(0, 10));
        assert_ne!(id(2, 9), id(0, 9));
        assert_ne!(id(2, 9), std::thread::spawn(|| id(2, 9)).join().unwrap());
    }

    #[test]
    fn default_stream_is_named_in_its_context_on_any_thread() {
        let elsewhere =
            |stream, context| std::thread::spawn(move || id(stream, context)).join().unwrap();
        for stream in [0, 1, 2] {
            assert!(id(stream, 9).names(elsewhere(stream, 9)), "{stream}");
            assert!(!id(stream, 9).names(elsewhere(stream, 10)), "{stream}");
        }
        assert!(id(0, 9).names(id(1, 9)) && !id(0, 9).names(id(2, 9)));
        assert!(id(0x70, 9).names(id(0x70, 10)) && !id(0x70, 9).names(id(0x71, 9)));
    }
}
