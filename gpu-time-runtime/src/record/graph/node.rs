//! A launch that becomes part of a graph, between two event records.

use crate::base::lock::locked;
use crate::base::thread_id;
use crate::cuda::Capture;
use crate::record::call::StreamCall;
use crate::record::graph::table::{GRAPHS, Pair, Reads, rows};
use crate::record::stream_state::{self, Mark, StreamKey, StreamState};
use crate::types::handles::Stream;
use crate::types::sample::Lost;

/// A launch between its two nodes.
pub(crate) struct Node {
    pair: Pair,
    /// Why the pair is a blank, whose times nobody reads: it only keeps the graph's shape.
    blank: Option<Lost>,
    capture: u64,
    is_first: bool,
    /// The thread of the start, in a stream that each thread has its own of.
    thread_id: Option<u64>,
    stream: Stream,
    stream_state: &'static StreamState,
    opened: Mark,
    tracked: bool,
    row: usize,
}

impl Node {
    pub fn open(place: &StreamCall, capture: &Capture, row: usize) -> Result<Box<Node>, Lost> {
        let StreamCall { context, stream, tracked, .. } = *place;
        let (pair, blank) = match Pair::cell(context, capture) {
            Ok(pair) => (pair, None),
            // A graph that is captured anew must keep its shape.
            Err(fault) => (Pair::blank(context)?, Some(fault.into())),
        };
        let thread_id = stream.is_per_thread().then(thread_id::current);
        let key = StreamKey::new(stream, place.thread);
        let (stream_state, opened) = stream_state::open(context, key);
        let started = context.record_node(&pair.events.start, stream);
        let (capture, is_first) = (capture.id, capture.is_at_root);
        let node = Node {
            pair,
            blank,
            capture,
            is_first,
            thread_id,
            stream,
            stream_state,
            opened,
            tracked,
            row,
        };
        match started {
            Ok(()) => Ok(Box::new(node)),
            Err(fault) => {
                node.stream_state.close();
                if node.blank.is_none() {
                    locked(&GRAPHS).place(node.pair, None);
                }
                Err(fault.into())
            }
        }
    }

    /// Makes the stop of the launch a node. `is_alive` says whether the stream still is.
    #[cold]
    pub fn close(self, is_alive: bool) {
        match self.stop(is_alive) {
            Err(reason) => self.abandon(reason),
            Ok(()) => {
                let nested = self.stream_state.close() != self.opened;
                if let Some(reason) = self.blank {
                    return rows().write(self.row, Err(reason));
                }
                let Node { row, is_first, tracked, .. } = self;
                let reads = Reads { row, is_first, nested, tracked };
                locked(&GRAPHS).place(self.pair, Some(reads));
            }
        }
    }

    fn stop(&self, is_alive: bool) -> Result<(), Lost> {
        if !is_alive {
            return Err(Lost::Stream);
        }
        if self.thread_id.is_some_and(|id| id != thread_id::current()) {
            return Err(Lost::Thread);
        }
        let context = self.pair.context;
        match context.capture(self.stream)? {
            // Outside of a capture the record would be an error.
            Some(capture) if capture.id == self.capture => {
                Ok(context.record_node(&self.pair.events.stop, self.stream)?)
            }
            _ => Err(Lost::Capture),
        }
    }

    /// Leaves the launch without a stop. The graph keeps the start until it is gone.
    #[cold]
    pub fn abandon(self, reason: Lost) {
        self.stream_state.close();
        rows().write(self.row, Err(reason));
        if self.blank.is_none() {
            locked(&GRAPHS).place(self.pair, None);
        }
    }
}
