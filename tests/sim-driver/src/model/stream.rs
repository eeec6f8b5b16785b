//! Streams: special handles (legacy and per-thread), creation, destruction, and the rule that links
//! blocking streams to the legacy stream. Priorities are stored but have no effect.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;
use crate::object::stream::{NON_BLOCKING, Stream};

impl Model {
    /// Returns a stream for a handle known to be live.
    pub fn stream(&self, stream: Handle) -> &Stream {
        self.streams.get(stream).expect("the stream of a resolved handle is live")
    }

    pub fn stream_mut(&mut self, stream: Handle) -> &mut Stream {
        self.streams.get_mut(stream).expect("the stream of a resolved handle is live")
    }

    pub fn stream_create(&mut self, flags: u32, priority: i32) -> DriverResult<Handle> {
        let context = self.current()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(Code::INVALID_VALUE);
        }
        self.counters.created_streams += 1;
        let hangs = self.faults.hangs(self.counters.created_streams);
        let mut stream = Stream::new(context, flags, priority, self.next_stream_id());
        stream.queue.hangs = hangs;
        let handle = self.streams.insert(stream);
        self.contexts.get_mut(context).expect("the current context is live").streams.push(handle);
        Ok(handle)
    }

    /// Resolves a handle passed by the program, regardless of the stream's state. 0 and 1 are the
    /// legacy stream in the current context, 2 is the calling thread's own stream in that context.
    pub fn find_stream(&mut self, stream: Handle) -> DriverResult<Handle> {
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

    fn per_thread_stream(&mut self) -> DriverResult<Handle> {
        let context = self.current()?;
        if let Some(&stream) = self.context(context)?.per_thread.get(&self.thread) {
            return Ok(stream);
        }
        let id = self.next_stream_id();
        let stream = self.streams.insert(Stream::new(context, 0, 0, id));
        let thread = self.thread;
        let context = self.contexts.get_mut(context).expect("the current context is live");
        context.per_thread.insert(thread, stream);
        context.streams.push(stream);
        Ok(stream)
    }

    /// Resolves a stream for work or a wait. The legacy stream cannot be used while a stream for
    /// which it would have to wait is capturing; trying to do so invalidates that capture.
    pub fn usable_stream(&mut self, stream: Handle) -> DriverResult<Handle> {
        let stream = self.find_stream(stream)?;
        if let Some(capture) = self.implicit_capture(stream) {
            return Err(self.invalidate(capture, Code::CAPTURE_IMPLICIT));
        }
        Ok(stream)
    }

    /// If `stream` is the legacy stream, returns the capture of a stream for which it would have to wait.
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

    pub fn stream_destroy(&mut self, stream: Handle) -> DriverResult {
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
            // Nothing can end the capture any more.
            if self.captures.get(capture).is_some_and(|capture| capture.origin == stream) {
                self.abandon_capture(capture);
            }
        }
        let destroyed = stream;
        let stream = self.streams.retire(destroyed);
        let context = self.stream(stream).context;
        let known = self.contexts.get_mut(context).map(|context| &mut context.streams);
        let lists = known.into_iter().chain([&mut self.waiting_streams]);
        lists.flatten().filter(|other| **other == destroyed).for_each(|other| *other = stream);
        self.stream_mut(stream).closed = true;
        self.remove_if_empty(stream);
        Ok(())
    }

    /// Removes a stream destroyed by the program, unless it still has a waiting command.
    pub fn remove_if_empty(&mut self, stream: Handle) {
        if self.stream(stream).closed && !self.stream(stream).queue.is_waiting() {
            let removed = self.streams.remove(stream).expect("the stream was just found");
            if let Some(context) = self.contexts.get_mut(removed.context) {
                context.streams.retain(|&other| other != stream);
                context.closed_end = context.closed_end.max(removed.queue.last.get().unwrap_or(0));
            }
        }
    }

    /// Drops the commands queued on a stream in an ended context, and ends all waits for them.
    pub fn abandon_stream(&mut self, stream: Handle) {
        if let Some(capture) = self.stream(stream).capture {
            self.abandon_capture(capture);
        }
        let now = self.now;
        self.stream_mut(stream).queue.abandon(now);
        self.waiting_streams.retain(|&other| other != stream);
    }
}
