//! A call whose body is timed as a whole.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::call::scope::{Scope, TimedCall};
use crate::call::source::Work;
use crate::call::stream::{Life, StreamGuard};
use crate::call::stream_call::GpuBracket;
use crate::call::stream_timed::{StreamOrHost, StreamTimed};
use crate::record::call::StreamCall;
use crate::record::timeline::CallId;
use crate::site::cost::Timing;
use crate::types::sample::Lost;

/// A call whose body is timed as a whole.
pub type BodyCall<G, W> = StreamOrHost<Body<G>, W>;

/// The body of a call on a stream, with a pair of events around it.
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

impl<G: StreamGuard, W: Work> StreamTimed<G, W> for Body<G> {
    #[inline(always)]
    fn begin(call: StreamCall, guard: G, work: W) -> Option<Self> {
        let strong = guard.upgrade();
        let bracket = call.open_body(Life::of(&strong), work.get());
        drop(strong);
        Some(Body { call, bracket, guard })
    }
}

impl<G: StreamGuard> TimedCall for Body<G> {
    fn end(&mut self, lost: Option<Lost>, _: &mut Timing<'_>) -> CallId {
        match (self.bracket.take(), lost) {
            (None, _) => {}
            (Some(bracket), Some(reason)) => self.call.abandon(bracket, reason),
            (Some(bracket), None) => {
                let strong = self.guard.upgrade();
                self.call.close(bracket, Life::of(&strong));
            }
        }
        self.call.call_id
    }
}
