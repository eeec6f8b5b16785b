//! The identity of a stream.

use crate::base::thread_id;
use crate::types::activity::EnqueueCall;
use crate::types::handles::Stream;

/// The identity of a stream. A handle is not enough, because the default streams have the same handles in all
/// contexts and on all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamId {
    Created(Stream),
    /// The default stream of the context with this handle.
    Legacy {
        context: usize,
    },
    /// The default stream of a thread in that context.
    PerThread {
        context: usize,
        thread: u64,
    },
}

impl StreamId {
    /// Identifies a stream of a context by the handle that the calling thread uses.
    pub fn new(stream: Stream, context: usize) -> StreamId {
        if stream.is_legacy() {
            StreamId::Legacy { context }
        } else if stream.is_per_thread() {
            StreamId::PerThread { context, thread: thread_id::current() }
        } else {
            StreamId::Created(stream)
        }
    }

    /// Returns the stream of a launch by the calling thread, if it is known.
    pub fn of(launched: &EnqueueCall) -> Option<StreamId> {
        Some(StreamId::new(Stream(launched.stream?), launched.context))
    }

    pub fn handle(self) -> Stream {
        match self {
            StreamId::Created(stream) => stream,
            StreamId::Legacy { .. } => Stream(0),
            StreamId::PerThread { .. } => Stream::PER_THREAD,
        }
    }

    /// Returns `true` if a function that names this stream also names `other`. A function that names a per-thread
    /// default stream and moves to another thread then names the stream of that thread.
    pub fn names(self, other: StreamId) -> bool {
        match (self, other) {
            (
                StreamId::PerThread { context, .. },
                StreamId::PerThread { context: of_other, .. },
            ) => context == of_other,
            _ => self == other,
        }
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
