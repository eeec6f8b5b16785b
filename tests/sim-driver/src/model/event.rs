//! Events: records, queries, waits and elapsed times. An event's time is the end of its record. The
//! host sees it after `visible_ns`. Elapsed times are rounded to `f32` milliseconds, as in the
//! driver.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;
use crate::object::context::ContextRef;
use crate::object::event::{DISABLE_TIMING, EXTERNAL, Event, EventState, FLAGS};
use crate::object::queue::Moment;
use crate::object::work::{GraphNode, Work};

/// Host cost of a record, with and without timing.
const TIMED_RECORD_NS: u64 = 812;
const UNTIMED_RECORD_NS: u64 = 154;

impl Model {
    pub fn event_create(&mut self, flags: u32) -> DriverResult<Handle> {
        let context = self.current()?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let timing = flags & DISABLE_TIMING == 0;
        Ok(self.events.insert(Event { context, timing, state: EventState::Unrecorded }))
    }

    pub fn event_destroy(&mut self, event: Handle) -> DriverResult {
        let alive = self.event(event).map(drop);
        self.events.remove(event);
        alive
    }

    /// Returns the event; fails if its context is no longer alive.
    pub fn event(&mut self, event: Handle) -> DriverResult<&Event> {
        if self.events.was_removed(event) {
            self.note("use_after_destroy", format!("event {event:#x}"));
        }
        let found = self.events.get(event).ok_or(Code::INVALID_HANDLE)?;
        self.contexts.get(found.context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        Ok(found)
    }

    pub fn event_record(&mut self, event: Handle, stream: Handle, flags: u32) -> DriverResult {
        let Event { context, timing, .. } = *self.event(event)?;
        self.charge("cuEventRecord", if timing { TIMED_RECORD_NS } else { UNTIMED_RECORD_NS });
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.usable_stream(stream)?;
        if self.stream(stream).context != context {
            return Err(Code::INVALID_HANDLE);
        }
        if let Some(capture) = self.capture_of(stream)? {
            if flags & EXTERNAL != 0 {
                return self.capture_work(capture, stream, Work::Record { event, record: 0 });
            }
            let state = self.capture_position(capture, stream);
            self.set_event(event, state);
            return Ok(());
        }
        self.record_now(event, stream, None)
    }

    /// Enqueues a record of the event, either for a call or as a graph node.
    pub fn record_now(
        &mut self,
        event: Handle,
        stream: Handle,
        graph: Option<GraphNode>,
    ) -> DriverResult {
        self.counters.records += 1;
        let record = self.counters.records;
        let at = self.enqueue(stream, Work::Record { event, record }, graph)?;
        self.set_event(event, EventState::Recorded { at, record });
        self.annotate("record", record as i64);
        Ok(())
    }

    fn set_event(&mut self, event: Handle, state: EventState) {
        if let Some(event) = self.events.get_mut(event) {
            event.state = state;
        }
    }

    /// Returns `true` if the host can see that this moment has passed.
    fn is_visible(&self, at: &Moment) -> bool {
        at.get().is_some_and(|at| at.saturating_add(self.constants.visible_ns) <= self.now)
    }

    pub fn event_query(&mut self, event: Handle) -> DriverResult {
        match self.event(event)?.state.clone() {
            EventState::Captured { .. } => Err(Code::CAPTURED_EVENT),
            EventState::Recorded { at, .. } if !self.is_visible(&at) => Err(Code::NOT_READY),
            _ => {
                self.now += self.constants.done_query_extra_ns;
                Ok(())
            }
        }
    }

    pub fn event_synchronize(&mut self, event: Handle) -> DriverResult {
        match self.event(event)?.state.clone() {
            EventState::Unrecorded => Ok(()),
            EventState::Captured { .. } => Err(Code::CAPTURED_EVENT),
            EventState::Recorded { at, .. } => self.wait_for(&at),
        }
    }

    /// Returns the time between two events in milliseconds, in single precision like the driver.
    pub fn event_elapsed(&mut self, start: Handle, stop: Handle) -> DriverResult<f32> {
        let (start_time, start_record, context) = self.event_time(start)?;
        let (stop_time, stop_record, stop_context) = self.event_time(stop)?;
        if context != stop_context {
            return Err(Code::INVALID_HANDLE);
        }
        if !self.is_visible(&start_time) || !self.is_visible(&stop_time) {
            return Err(Code::NOT_READY);
        }
        let time = |moment: Moment| moment.get().expect("a visible moment is known") as i64;
        let elapsed = time(stop_time) - time(start_time);
        self.annotate("start_record", start_record as i64);
        self.annotate("stop_record", stop_record as i64);
        self.annotate("elapsed_ns", elapsed);
        Ok((elapsed as f64 / 1e6) as f32)
    }

    fn event_time(&mut self, event: Handle) -> DriverResult<(Moment, u64, ContextRef)> {
        let &Event { context, timing, ref state } = self.event(event)?;
        match state.clone() {
            _ if !timing => Err(Code::INVALID_HANDLE),
            EventState::Unrecorded => Err(Code::INVALID_HANDLE),
            // Driver 580 distinguishes a capture in progress from one that has ended.
            EventState::Captured { capture, .. } => match self.captures.get(capture) {
                Some(_) => Err(Code::CAPTURED_EVENT),
                None => Err(Code::INVALID_VALUE),
            },
            EventState::Recorded { at, record } => Ok((at, record, context)),
        }
    }

    /// Makes a stream wait for the most recent record of an event.
    pub fn stream_wait_event(&mut self, stream: Handle, event: Handle, flags: u32) -> DriverResult {
        let state = self.event(event)?.state.clone();
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.usable_stream(stream)?;
        if flags & EXTERNAL == 0
            && let EventState::Captured { capture, stream: origin, position } = state
        {
            return self.capture_join(capture, origin, position, stream);
        }
        if let Some(capture) = self.capture_of(stream)? {
            if flags & EXTERNAL != 0 {
                return self.capture_work(capture, stream, Work::Wait { event: Some(event) });
            }
            // A capture cannot depend on work outside it.
            return match state {
                EventState::Unrecorded => Ok(()),
                _ => Err(self.invalidate(capture, Code::CAPTURE_ISOLATION)),
            };
        }
        match state {
            EventState::Unrecorded => Ok(()),
            EventState::Captured { .. } => Err(Code::CAPTURED_EVENT),
            EventState::Recorded { at, .. } => self.enqueue_after(stream, at, None),
        }
    }
}
