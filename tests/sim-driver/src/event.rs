//! Events.

use crate::code::{Answer, Code};
use crate::context::ContextRef;
use crate::handle::Handle;
use crate::model::Model;
use crate::queue::Moment;
use crate::work::Work;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;
/// All flags that `cuEventCreate` takes.
const FLAGS: u32 = 7;
/// `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`.
pub(crate) const EXTERNAL: u32 = 1;

/// What a record costs the host, with and without timing.
const TIMED_RECORD_NS: u64 = 812;
const UNTIMED_RECORD_NS: u64 = 154;

pub(crate) struct Event {
    pub context: ContextRef,
    pub timing: bool,
    pub state: State,
}

/// What an event stands for.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Unrecorded,
    Recorded {
        at: Moment,
        /// Which record of the process it was.
        record: u64,
    },
    /// Recorded into a capture, as a point of its graph: it will never have a time.
    Captured {
        capture: Handle,
        stream: Handle,
        position: usize,
    },
}

impl Model {
    pub fn event_create(&mut self, flags: u32) -> Answer<Handle> {
        let context = self.current()?;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let timing = flags & DISABLE_TIMING == 0;
        Ok(self.events.insert(Event { context, timing, state: State::Unrecorded }))
    }

    pub fn event_destroy(&mut self, event: Handle) -> Answer {
        let alive = self.event(event).map(drop);
        self.events.remove(event);
        alive
    }

    /// The event, whose context must be alive.
    pub fn event(&mut self, event: Handle) -> Answer<&Event> {
        if self.events.was_removed(event) {
            self.note("use_after_destroy", format!("event {event:#x}"));
        }
        let found = self.events.get(event).ok_or(Code::INVALID_HANDLE)?;
        self.contexts.get(found.context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        Ok(found)
    }

    pub fn event_record(&mut self, event: Handle, stream: Handle, flags: u32) -> Answer {
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
        self.record_now(event, stream, false)
    }

    /// Enqueues the record of an event, from a call or from a graph.
    pub fn record_now(&mut self, event: Handle, stream: Handle, graph: bool) -> Answer {
        self.counters.records += 1;
        let record = self.counters.records;
        let at = self.enqueue(stream, Work::Record { event, record }, graph)?;
        self.set_event(event, State::Recorded { at, record });
        self.find("record", record as i64);
        Ok(())
    }

    fn set_event(&mut self, event: Handle, state: State) {
        if let Some(event) = self.events.get_mut(event) {
            event.state = state;
        }
    }

    /// Whether the host can see that this moment has passed.
    fn is_visible(&self, at: &Moment) -> bool {
        at.get().is_some_and(|at| at.saturating_add(self.constants.visible_ns) <= self.now)
    }

    pub fn event_query(&mut self, event: Handle) -> Answer {
        match self.event(event)?.state.clone() {
            State::Captured { .. } => Err(Code::CAPTURED_EVENT),
            State::Recorded { at, .. } if !self.is_visible(&at) => Err(Code::NOT_READY),
            _ => {
                self.now += self.constants.done_query_extra_ns;
                Ok(())
            }
        }
    }

    pub fn event_synchronize(&mut self, event: Handle) -> Answer {
        match self.event(event)?.state.clone() {
            State::Unrecorded => Ok(()),
            State::Captured { .. } => Err(Code::CAPTURED_EVENT),
            State::Recorded { at, .. } => self.wait_for(&at),
        }
    }

    /// The time between two events in milliseconds, as single as the driver's.
    pub fn event_elapsed(&mut self, start: Handle, stop: Handle) -> Answer<f32> {
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
        self.find("start_record", start_record as i64);
        self.find("stop_record", stop_record as i64);
        self.find("elapsed_ns", elapsed);
        Ok((elapsed as f64 / 1e6) as f32)
    }

    fn event_time(&mut self, event: Handle) -> Answer<(Moment, u64, ContextRef)> {
        let &Event { context, timing, ref state } = self.event(event)?;
        match state.clone() {
            _ if !timing => Err(Code::INVALID_HANDLE),
            State::Unrecorded => Err(Code::INVALID_HANDLE),
            // So answers driver 580 while the capture goes on, and once it has ended.
            State::Captured { capture, .. } => match self.captures.get(capture) {
                Some(_) => Err(Code::CAPTURED_EVENT),
                None => Err(Code::INVALID_VALUE),
            },
            State::Recorded { at, record } => Ok((at, record, context)),
        }
    }

    /// Lets a stream wait for what an event stands for now.
    pub fn stream_wait_event(&mut self, stream: Handle, event: Handle, flags: u32) -> Answer {
        let state = self.event(event)?.state.clone();
        if flags & !EXTERNAL != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.usable_stream(stream)?;
        if flags & EXTERNAL == 0
            && let State::Captured { capture, stream: origin, position } = state
        {
            return self.capture_join(capture, origin, position, stream);
        }
        if let Some(capture) = self.capture_of(stream)? {
            if flags & EXTERNAL != 0 {
                return self.capture_work(capture, stream, Work::Wait { event: Some(event) });
            }
            // A capture cannot depend on work outside of it.
            return match state {
                State::Unrecorded => Ok(()),
                _ => Err(self.invalidate(capture, Code::CAPTURE_ISOLATION)),
            };
        }
        match state {
            State::Unrecorded => Ok(()),
            State::Captured { .. } => Err(Code::CAPTURED_EVENT),
            State::Recorded { at, .. } => self.enqueue_after(stream, at, false),
        }
    }
}
