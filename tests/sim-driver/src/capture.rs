//! Stream capture, and the graphs that come of it.
//!
//! Work on a capturing stream is noted in the order in which it was enqueued, over all streams of
//! the capture, and a launch runs it in that order on one stream.

use std::sync::Arc;

use crate::code::{Answer, Code};
use crate::context::ContextRef;
use crate::event::State;
use crate::handle::Handle;
use crate::model::Model;
use crate::queue::Moment;
use crate::work::Work;

/// `CUstreamCaptureMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CaptureMode {
    #[default]
    Global,
    ThreadLocal,
    Relaxed,
}

impl CaptureMode {
    pub fn new(mode: u32) -> Answer<Self> {
        match mode {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

/// `CUstreamCaptureStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

pub(crate) struct Capture {
    id: u64,
    /// The graph that it fills, which has no nodes before its end.
    pub graph: Handle,
    origin: Handle,
    mode: CaptureMode,
    thread: u32,
    invalid: bool,
    nodes: Vec<Work>,
    branches: Vec<Branch>,
}

/// A stream that takes part in a capture.
struct Branch {
    stream: Handle,
    /// How many nodes it has added.
    position: usize,
    /// Whether another stream of the capture waits for all of them.
    joined: bool,
}

pub(crate) struct Graph {
    pub context: ContextRef,
    pub nodes: Arc<[Work]>,
    /// The user objects that it holds a reference to, once for each.
    pub objects: Vec<Handle>,
}

pub(crate) struct Exec {
    pub context: ContextRef,
    pub nodes: Arc<[Work]>,
    pub objects: Vec<Handle>,
    /// The end of its last launch.
    pub launched: Moment,
}

impl Model {
    /// Fails a call that may not be made while a capture goes on: one of the calling thread's own,
    /// or any thread's in global mode, unless the caller has exchanged its own mode. Making it
    /// ruins those captures.
    pub fn forbid_during_capture(&mut self) -> Answer {
        if self.captures.is_empty() {
            return Ok(());
        }
        let (thread, mode) = (self.thread, self.caller().capture_mode);
        let ruined: Vec<Handle> = self
            .captures
            .iter_mut()
            .filter(|(_, capture)| match (mode, capture.mode) {
                (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
                (CaptureMode::Global, CaptureMode::Global) => true,
                _ => capture.thread == thread,
            })
            .map(|(handle, _)| handle)
            .collect();
        let result = if ruined.is_empty() { Ok(()) } else { Err(Code::CAPTURE_UNSUPPORTED) };
        for capture in ruined {
            let _ = self.invalidate(capture, Code::CAPTURE_UNSUPPORTED);
        }
        result
    }

    /// Ruins a capture, and answers with the code for it.
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

    /// The capture that work on this stream belongs to.
    pub fn capture_of(&self, stream: Handle) -> Answer<Option<Handle>> {
        match self.stream(stream).capture {
            Some(capture) if self.captures.get(capture).is_none_or(|c| c.invalid) => {
                Err(Code::CAPTURE_INVALIDATED)
            }
            capture => Ok(capture),
        }
    }

    /// The state of a stream's capture, its id and its graph.
    pub fn capture_status(&mut self, stream: Handle) -> Answer<(Status, u64, Handle)> {
        let stream = self.find_stream(stream)?;
        if self.implicit_capture(stream).is_some() {
            return Err(Code::CAPTURE_IMPLICIT);
        }
        let capture = self.stream(stream).capture.and_then(|capture| self.captures.get(capture));
        Ok(match capture {
            None => (Status::None, 0, 0),
            Some(capture) if capture.invalid => (Status::Invalidated, capture.id, 0),
            Some(capture) => (Status::Active, capture.id, capture.graph),
        })
    }

    /// On how many nodes the next one of the stream will depend.
    pub fn capture_dependencies(&self, stream: Handle) -> usize {
        let capture = self.streams.get(stream).and_then(|found| self.captures.get(found.capture?));
        let depends = |capture: &Capture| {
            let branch = capture.branches.iter().find(|branch| branch.stream == stream);
            branch.is_some_and(|branch| branch.position > 0 || stream != capture.origin)
        };
        usize::from(capture.is_some_and(depends))
    }

    pub fn capture_begin(&mut self, stream: Handle, mode: CaptureMode) -> Answer {
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

    /// Ends a capture, and answers its graph.
    pub fn capture_end(&mut self, stream: Handle) -> Answer<Handle> {
        let stream = self.find_stream(stream)?;
        let capture = self.stream(stream).capture.ok_or(Code::ILLEGAL_STATE)?;
        let found = self.captures.get(capture).expect("a stream names a live capture");
        if found.origin != stream {
            return Err(Code::CAPTURE_UNMATCHED);
        }
        if found.mode != CaptureMode::Relaxed && found.thread != self.thread {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        let ended = self.drop_capture(capture).expect("it was just there");
        let answer = match &ended {
            ended if ended.invalid => Err(Code::CAPTURE_INVALIDATED),
            ended if ended.branches.iter().any(|b| b.stream != stream && !b.joined) => {
                Err(Code::CAPTURE_UNJOINED)
            }
            _ => Ok(ended.graph),
        };
        match (answer, self.graphs.get_mut(ended.graph)) {
            (Ok(_), Some(graph)) => graph.nodes = ended.nodes.into(),
            _ => self.graph_destroy(ended.graph)?,
        }
        answer
    }

    /// Takes a capture away from its streams.
    pub fn drop_capture(&mut self, capture: Handle) -> Option<Capture> {
        let dropped = self.captures.remove(capture)?;
        for branch in &dropped.branches {
            if let Some(stream) = self.streams.get_mut(branch.stream) {
                stream.capture = None;
            }
        }
        Some(dropped)
    }

    /// Adds a node instead of running the work.
    pub fn capture_work(&mut self, capture: Handle, stream: Handle, work: Work) -> Answer {
        let capture = self.captures.get_mut(capture).ok_or(Code::CAPTURE_INVALIDATED)?;
        capture.nodes.push(work);
        let origin = capture.origin;
        if let Some(branch) = capture.branches.iter_mut().find(|branch| branch.stream == stream) {
            branch.position += 1;
            branch.joined = stream == origin;
        }
        Ok(())
    }

    /// What an event that is recorded into a capture stands for.
    pub fn capture_position(&self, capture: Handle, stream: Handle) -> State {
        let branches = self.captures.get(capture).map(|capture| &capture.branches);
        let branch = branches.and_then(|all| all.iter().find(|branch| branch.stream == stream));
        State::Captured { capture, stream, position: branch.map_or(0, |branch| branch.position) }
    }

    /// Lets `stream` wait for a point of a capture, which takes it into that capture.
    pub fn capture_join(
        &mut self,
        capture: Handle,
        origin: Handle,
        position: usize,
        stream: Handle,
    ) -> Answer {
        if let Some(own) = self.capture_of(stream)?
            && own != capture
        {
            return Err(self.invalidate(own, Code::CAPTURE_MERGE));
        }
        let Some(found) = self.captures.get_mut(capture) else {
            // That capture has ended, and its points have no place in time.
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
