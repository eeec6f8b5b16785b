//! Stream capture: the driver's rules for all three modes, forks and joins by events, and
//! invalidation.
//!
//! Work on a capturing stream becomes a node. Nodes are in the order in which they were enqueued,
//! across all streams in the capture. A launch runs them in that order on one stream, so graphs
//! have no concurrency.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;
use crate::object::capture::{Branch, Capture, CaptureMode, CaptureStatus};
use crate::object::event::EventState;
use crate::object::graph::Graph;
use crate::object::work::Work;

impl Model {
    /// Fails a call that is forbidden during a capture, and invalidates the captures concerned:
    /// those begun by the calling thread, and those begun by any thread if both the capture and the
    /// caller are in global mode. Nothing is forbidden if either is in relaxed mode. The caller's
    /// mode is set by `cuThreadExchangeStreamCaptureMode`.
    pub fn forbid_during_capture(&mut self) -> DriverResult {
        if self.captures.is_empty() {
            return Ok(());
        }
        let (thread, mode) = (self.thread, self.caller().capture_mode);
        let affected: Vec<Handle> = self
            .captures
            .iter_mut()
            .filter(|(_, capture)| match (mode, capture.mode) {
                (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
                (CaptureMode::Global, CaptureMode::Global) => true,
                _ => capture.thread == thread,
            })
            .map(|(handle, _)| handle)
            .collect();
        let result = if affected.is_empty() { Ok(()) } else { Err(Code::CAPTURE_UNSUPPORTED) };
        for capture in affected {
            let _ = self.invalidate(capture, Code::CAPTURE_UNSUPPORTED);
        }
        result
    }

    /// Invalidates a capture, and returns `code` as the caller's error.
    #[must_use]
    pub fn invalidate(&mut self, capture: Handle, code: Code) -> Code {
        if let Some(capture) = self.captures.get_mut(capture)
            && !capture.invalid
        {
            capture.invalid = true;
            let id = capture.id;
            self.note("capture_invalidated", format!("capture {id}: {}", code.0));
        }
        code
    }

    /// Returns the capture to which work on this stream belongs.
    pub fn capture_of(&self, stream: Handle) -> DriverResult<Option<Handle>> {
        match self.stream(stream).capture {
            Some(capture) if self.captures.get(capture).is_none_or(|c| c.invalid) => {
                Err(Code::CAPTURE_INVALIDATED)
            }
            capture => Ok(capture),
        }
    }

    /// Returns the status, the id and the graph of a stream's capture.
    pub fn capture_status(&mut self, stream: Handle) -> DriverResult<(CaptureStatus, u64, Handle)> {
        let stream = self.find_stream(stream)?;
        if self.implicit_capture(stream).is_some() {
            return Err(Code::CAPTURE_IMPLICIT);
        }
        let capture = self.stream(stream).capture.and_then(|capture| self.captures.get(capture));
        Ok(match capture {
            None => (CaptureStatus::None, 0, 0),
            Some(capture) if capture.invalid => (CaptureStatus::Invalidated, capture.id, 0),
            Some(capture) => (CaptureStatus::Active, capture.id, capture.graph),
        })
    }

    /// Returns the number of nodes that the next node on the stream will depend on.
    pub fn capture_dependencies(&self, stream: Handle) -> usize {
        let capture = self.streams.get(stream).and_then(|found| self.captures.get(found.capture?));
        let depends = |capture: &Capture| {
            let branch = capture.branches.iter().find(|branch| branch.stream == stream);
            branch.is_some_and(|branch| branch.position > 0 || stream != capture.origin)
        };
        usize::from(capture.is_some_and(depends))
    }

    pub fn capture_begin(&mut self, stream: Handle, mode: CaptureMode) -> DriverResult {
        let stream = self.find_stream(stream)?;
        let context = self.stream(stream).context;
        if self.context(context)?.legacy == stream {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if self.stream(stream).capture.is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        self.counters.captures += 1;
        let nodes = Vec::new().into();
        let graph = self.graphs.insert(Graph { context, nodes, objects: Vec::new() });
        let capture = self.captures.insert(Capture {
            id: self.counters.captures,
            graph,
            origin: stream,
            mode,
            thread: self.thread,
            invalid: false,
            nodes: Vec::new(),
            branches: vec![Branch { stream, position: 0, joined: true }],
        });
        self.stream_mut(stream).capture = Some(capture);
        Ok(())
    }

    /// Ends a capture, and returns its graph.
    pub fn capture_end(&mut self, stream: Handle) -> DriverResult<Handle> {
        let stream = self.find_stream(stream)?;
        let capture = self.stream(stream).capture.ok_or(Code::ILLEGAL_STATE)?;
        let found = self.captures.get(capture).expect("the capture of a stream is live");
        if found.origin != stream {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        if found.mode != CaptureMode::Relaxed && found.thread != self.thread {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        let capture = self.drop_capture(capture).expect("the capture was just found");
        let result = match &capture {
            capture if capture.invalid => Err(Code::CAPTURE_INVALIDATED),
            capture if capture.branches.iter().any(|b| b.stream != stream && !b.joined) => {
                Err(Code::CAPTURE_UNJOINED)
            }
            _ => Ok(capture.graph),
        };
        match (result, self.graphs.get_mut(capture.graph)) {
            (Ok(_), Some(graph)) => graph.nodes = capture.nodes.into(),
            _ => self.graph_destroy(capture.graph)?,
        }
        result
    }

    /// Removes a capture from its streams.
    pub fn drop_capture(&mut self, capture: Handle) -> Option<Capture> {
        let dropped = self.captures.remove(capture)?;
        for branch in &dropped.branches {
            if let Some(stream) = self.streams.get_mut(branch.stream) {
                stream.capture = None;
            }
        }
        Some(dropped)
    }

    /// Removes a capture from its streams, and destroys its graph.
    pub fn abandon_capture(&mut self, capture: Handle) {
        if let Some(dropped) = self.drop_capture(capture) {
            self.graph_destroy(dropped.graph).expect("a capture has a graph");
        }
    }

    /// Adds a node to the capture instead of running the work.
    pub fn capture_work(&mut self, capture: Handle, stream: Handle, work: Work) -> DriverResult {
        let capture = self.captures.get_mut(capture).ok_or(Code::CAPTURE_INVALIDATED)?;
        capture.nodes.push(work);
        let origin = capture.origin;
        if let Some(branch) = capture.branches.iter_mut().find(|branch| branch.stream == stream) {
            branch.position += 1;
            branch.joined = stream == origin;
        }
        Ok(())
    }

    /// Returns the state of an event that is being recorded into a capture.
    pub fn capture_position(&self, capture: Handle, stream: Handle) -> EventState {
        let branches = self.captures.get(capture).map(|capture| &capture.branches);
        let branch = branches.and_then(|all| all.iter().find(|branch| branch.stream == stream));
        let position = branch.map_or(0, |branch| branch.position);
        EventState::Captured { capture, stream, position }
    }

    /// Makes `stream` wait for a position in a capture, which adds the stream to that capture.
    pub fn capture_join(
        &mut self,
        capture: Handle,
        origin: Handle,
        position: usize,
        stream: Handle,
    ) -> DriverResult {
        if let Some(own) = self.capture_of(stream)?
            && own != capture
        {
            return Err(self.invalidate(own, Code::CAPTURE_MERGE));
        }
        let Some(found) = self.captures.get_mut(capture) else {
            // The capture has ended, and a position in a graph has no time.
            return Err(Code::CAPTURED_EVENT);
        };
        if found.invalid {
            return Err(Code::CAPTURE_INVALIDATED);
        }
        if let Some(branch) = found.branches.iter_mut().find(|b| b.stream == origin) {
            branch.joined |= branch.position == position;
        }
        if !found.branches.iter().any(|branch| branch.stream == stream) {
            found.branches.push(Branch { stream, position: 0, joined: false });
        }
        self.stream_mut(stream).capture = Some(capture);
        Ok(())
    }
}
