//! A launch in a capture, between two event records.

use crate::base::{lock::locked, thread_id};
use crate::cuda::Capture;
use crate::record::graph::table::{GRAPHS, NodeInfo, Pair, record};
use crate::record::stream_state::{NestingMark, StreamKey, StreamState};
use crate::record::threads::StreamCall;
use crate::site::series_id::SeriesIdentity;
use crate::types::{handles::Stream, sample::Lost};

/// A launch whose start is a node and whose stop has not been recorded yet.
pub(crate) struct OpenNode {
    pair: Pair,
    /// The reason why the pair is blank. A blank pair's times are never read; it only preserves the
    /// graph's shape.
    blank: Option<Lost>,
    capture: u64,
    /// The thread that recorded the start, if the launch is on a per-thread stream.
    thread_id: Option<u64>,
    stream: Stream,
    stream_state: &'static StreamState,
    opened: NestingMark,
    info: NodeInfo,
}

impl OpenNode {
    /// Records the start of the launch as a node.
    pub fn open(
        call: &StreamCall,
        capture: &Capture,
        series: SeriesIdentity,
    ) -> Result<Box<OpenNode>, Lost> {
        let StreamCall { site, context, stream, tracked, .. } = *call;
        let (pair, blank) = match Pair::for_capture(context, capture) {
            Ok(pair) => (pair, None),
            // If a graph is captured again, it must keep its shape.
            Err(fault) => (Pair::blank(context)?, Some(fault.into())),
        };
        let thread_id = stream.is_per_thread().then(thread_id::current);
        let key = StreamKey::new(stream, call.thread);
        let (stream_state, opened) = locked(&call.thread.recorder).open_stream(context, key);
        let started = context.record_node(&pair.events.start, stream);
        let info = NodeInfo { site, series, is_first: capture.is_at_root, nested: false, tracked };
        let capture = capture.id;
        let node = OpenNode { pair, blank, capture, thread_id, stream, stream_state, opened, info };
        match started {
            Ok(()) => Ok(Box::new(node)),
            Err(fault) => {
                node.stream_state.close();
                if node.blank.is_none() {
                    locked(&GRAPHS).add(node.pair, None);
                }
                Err(fault.into())
            }
        }
    }

    /// Records the launch's stop as a node. `is_alive` is `false` if the stream has been destroyed.
    #[cold]
    pub fn close(self, is_alive: bool) {
        match self.stop(is_alive) {
            Err(reason) => self.lose(reason),
            Ok(()) => {
                let nested = self.stream_state.close() != self.opened;
                if let Some(reason) = self.blank {
                    return record(self.info.site, self.info.series, Err(reason));
                }
                locked(&GRAPHS).add(self.pair, Some(NodeInfo { nested, ..self.info }));
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
            // Outside its capture, the record would fail.
            Some(capture) if capture.id == self.capture => {
                Ok(context.record_node(&self.pair.events.stop, self.stream)?)
            }
            _ => Err(Lost::Capture),
        }
    }

    /// Counts the launch as lost, without a stop. The graph keeps the start node until it is
    /// destroyed.
    #[cold]
    pub fn lose(self, reason: Lost) {
        self.stream_state.close();
        record(self.info.site, self.info.series, Err(reason));
        if self.blank.is_none() {
            locked(&GRAPHS).add(self.pair, None);
        }
    }
}
