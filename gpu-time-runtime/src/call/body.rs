//! A call whose body is timed as a whole.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::call::host::HostCall;
use crate::call::scope::{CallTiming, Scope, TimedCall, TraceId};
use crate::call::source::Work;
use crate::call::stream::StreamGuard;
use crate::call::stream_call::GpuBracket;
use crate::call::stream_timed::StreamTimed;
use crate::record::call::StreamCall;
use crate::types::sample::Lost;

/// A call whose body is timed as a whole.
pub enum BodyCall<G, W> {
    /// On a stream, with a pair of events around the body.
    Stream(Body<G>),
    /// On the CPU, without a stream to record events in.
    Host(HostCall<W>),
}

/// The body of a call on a stream.
pub struct Body<G> {
    call: StreamCall,
    /// `None` if the bracket was lost at its start.
    bracket: Option<GpuBracket>,
    guard: G,
}

const _: () = {
    const fn holds_across_awaits_and_unwinding<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    holds_across_awaits_and_unwinding::<Scope<BodyCall<(), ()>>>();
};

impl<G: StreamGuard, W: Work> StreamTimed<G, W> for BodyCall<G, W> {
    #[inline(always)]
    fn on_stream(call: StreamCall, guard: G, work: W) -> Option<Self> {
        let liveness = guard.upgrade();
        let bracket = call.open_body(liveness.life(), work.get());
        drop(liveness);
        Some(BodyCall::Stream(Body { call, bracket, guard }))
    }

    fn on_host(call: HostCall<W>) -> Self {
        BodyCall::Host(call)
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
