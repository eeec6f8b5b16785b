//! A call whose body is timed as a whole.

use crate::call::brackets::Bracket;
use crate::call::host::HostCall;
use crate::call::scope::{CallTiming, TimedCall, TraceId};
use crate::call::source::Work;
use crate::call::stream::StreamGuard;
use crate::record::call::StreamCall;
use crate::types::sample::Lost;

/// A call whose body is timed as a whole.
pub enum BodyCall<G, W> {
    /// On a stream, with a pair of events around the body.
    Stream(Body<G>),
    /// On the CPU, where there is no stream to record events in.
    Host(HostCall<W>),
}

/// The body of a call on a stream.
pub struct Body<G> {
    call: StreamCall,
    /// `None` if the bracket was lost at its start.
    bracket: Option<Bracket>,
    guard: G,
}

impl<G: StreamGuard, W: Work> BodyCall<G, W> {
    #[inline(always)]
    pub(crate) fn new(call: StreamCall, guard: G, work: W) -> Self {
        let liveness = guard.upgrade();
        let bracket = call.open_body(liveness.life(), work.get());
        drop(liveness);
        BodyCall::Stream(Body { call, bracket, guard })
    }
}

impl<G: StreamGuard, W: Work> TimedCall for BodyCall<G, W> {
    fn end(&mut self, lost: Option<Lost>, timing: &mut CallTiming<'_>) {
        match self {
            BodyCall::Host(call) => call.end(lost, timing),
            BodyCall::Stream(Body { call, bracket, guard }) => match (bracket.take(), lost) {
                (None, _) => {}
                (Some(bracket), Some(reason)) => call.abandon(bracket, reason),
                (Some(bracket), None) => {
                    let liveness = guard.upgrade();
                    call.close(bracket, liveness.life());
                }
            },
        }
    }

    fn id(&self) -> TraceId {
        match self {
            BodyCall::Stream(body) => TraceId(body.call.call_id),
            BodyCall::Host(call) => call.id(),
        }
    }
}
