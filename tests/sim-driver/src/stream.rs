//! Streams: what the program's handles stand for, and how streams relate to their context.

use crate::code::{Answer, Code};
use crate::context::ContextRef;
use crate::handle::Handle;
use crate::model::Model;
use crate::queue::Queue;

/// `CU_STREAM_NON_BLOCKING`.
pub(crate) const NON_BLOCKING: u32 = 1;

pub(crate) struct Stream {
    pub context: ContextRef,
    pub flags: u32,
    pub priority: i32,
    pub id: u64,
    /// Whether the program has destroyed it; it lives on until it is empty.
    pub closed: bool,
    pub capture: Option<Handle>,
    /// Kept for who asks; the L2 has no lines that persist.
    pub window: Window,
    pub queue: Queue,
}

/// How `CUaccessPolicyWindow` begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    base: u64,
    bytes: u64,
    hit_ratio: f32,
    hit: i32,
    miss: i32,
}

impl Window {
    /// `CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW`.
    pub const ATTRIBUTE: i32 = 1;
}

impl Stream {
    pub fn new(context: ContextRef, flags: u32, priority: i32, id: u64) -> Self {
        let (window, queue) = (Window::default(), Queue::default());
        Self { context, flags, priority, id, closed: false, capture: None, window, queue }
    }

    /// Whether it and the legacy stream wait for each other.
    pub fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

impl Model {
    /// A stream that is known to exist.
    pub fn stream(&self, stream: Handle) -> &Stream {
        self.streams.get(stream).expect("a handle of the model's own is live")
    }

    pub fn stream_mut(&mut self, stream: Handle) -> &mut Stream {
        self.streams.get_mut(stream).expect("a handle of the model's own is live")
    }

    pub fn stream_create(&mut self, flags: u32, priority: i32) -> Answer<Handle> {
        let context = self.current()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.counters.created_streams += 1;
        let hangs = self.faults.hangs(self.counters.created_streams);
        let mut stream = Stream::new(context, flags, priority, self.next_stream_id());
        stream.queue.hangs = hangs;
        let handle = self.streams.insert(stream);
        self.contexts.get_mut(context).expect("it is current").streams.push(handle);
        Ok(handle)
    }

    /// The stream that the program means, without asking what state it is in. 0 and 1 are the
    /// current context's legacy stream, 2 is the calling thread's own in that context.
    pub fn find_stream(&mut self, stream: Handle) -> Answer<Handle> {
        match stream {
            0 | 1 => {
                let context = self.current()?;
                Ok(self.context(context)?.legacy)
            }
            2 => self.per_thread_stream(),
            _ => {
                let Some(found) = self.streams.get(stream).filter(|found| !found.closed) else {
                    if self.streams.was_removed(stream) || self.streams.get(stream).is_some() {
                        self.note("use_after_destroy", format!("stream {stream:#x}"));
                    }
                    return Err(Code::INVALID_HANDLE);
                };
                self.context(found.context)?;
                Ok(stream)
            }
        }
    }

    fn per_thread_stream(&mut self) -> Answer<Handle> {
        let context = self.current()?;
        if let Some(&stream) = self.context(context)?.per_thread.get(&self.thread) {
            return Ok(stream);
        }
        let id = self.next_stream_id();
        let stream = self.streams.insert(Stream::new(context, 0, 0, id));
        let thread = self.thread;
        let context = self.contexts.get_mut(context).expect("it is current");
        context.per_thread.insert(thread, stream);
        context.streams.push(stream);
        Ok(stream)
    }

    /// The stream, for work or a wait. The legacy stream may not be used while a stream that it
    /// would have to wait for is capturing; trying to ruins that capture.
    pub fn usable_stream(&mut self, stream: Handle) -> Answer<Handle> {
        let stream = self.find_stream(stream)?;
        if let Some(capture) = self.implicit_capture(stream) {
            return Err(self.invalidate(capture, Code::CAPTURE_IMPLICIT));
        }
        Ok(stream)
    }

    /// The capture that the legacy stream would have to wait for.
    pub fn implicit_capture(&self, stream: Handle) -> Option<Handle> {
        if self.captures.is_empty() {
            return None;
        }
        let context = self.contexts.get(self.stream(stream).context)?;
        if context.legacy != stream {
            return None;
        }
        context
            .streams
            .iter()
            .map(|&other| self.stream(other))
            .find_map(|other| other.capture.filter(|_| other.is_blocking()))
    }

    pub fn stream_destroy(&mut self, stream: Handle) -> Answer {
        if stream <= 2 {
            return Err(Code::INVALID_HANDLE);
        }
        match self.find_stream(stream) {
            Ok(_) => {}
            Err(Code::CONTEXT_IS_DESTROYED) => {
                self.streams.remove(stream);
                return Err(Code::CONTEXT_IS_DESTROYED);
            }
            Err(code) => return Err(code),
        }
        if let Some(capture) = self.stream(stream).capture {
            let _ = self.invalidate(capture, Code::CAPTURE_INVALIDATED);
        }
        self.stream_mut(stream).closed = true;
        self.remove_if_empty(stream);
        Ok(())
    }

    /// Lets go of a stream that the program has destroyed, once nothing in it waits.
    pub fn remove_if_empty(&mut self, stream: Handle) {
        if self.stream(stream).closed && !self.stream(stream).queue.is_stuck() {
            let removed = self.streams.remove(stream).expect("it was just there");
            if let Some(context) = self.contexts.get_mut(removed.context) {
                context.streams.retain(|&other| other != stream);
                context.closed_end =
                    context.closed_end.max(removed.queue.last().get().unwrap_or(0));
            }
        }
    }

    /// Drops what a stream of an ended context had queued. Whoever waits for it need not any more.
    pub fn abandon_stream(&mut self, stream: Handle) {
        if let Some(capture) = self.stream(stream).capture
            && let Some(dropped) = self.drop_capture(capture)
        {
            self.graph_destroy(dropped.graph).expect("a capture has a graph");
        }
        let now = self.now;
        self.stream_mut(stream).queue.abandon(now);
        self.stuck.retain(|&other| other != stream);
    }
}
