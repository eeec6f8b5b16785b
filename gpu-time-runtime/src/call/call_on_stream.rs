//! Calls timed on a stream: by events around the body or around each launch, or between two barriers.

use crate::call::barriers::Barriers;
use crate::call::call_state::CallState;
use crate::call::host_start::HostStart;
use crate::call::stream::{Life, StreamGuard};
use crate::call::stream_call::{GpuBracket, OpenLaunch, abandon};
use crate::record::{open_brackets, threads::StreamCall, timeline::CallId};
use crate::site::cost::CostGuard;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::sample::Lost;

/// A timed call on a stream.
///
/// Invariant: its thread is not inside an opened call, which would include its time.
pub(crate) struct CallOnStream<G> {
    pub call: StreamCall,
    /// Detects whether the stream was dropped.
    pub guard: G,
    started: Option<HostStart>,
    timing: StreamTiming,
}

/// What times a call on a stream, as its attribute asks.
enum StreamTiming {
    /// An event pair around the body; `None` if it was lost at the start.
    Body(Option<GpuBracket>),
    /// An event pair around each launch.
    Launches(CallState),
    /// A barrier before and after the body.
    Barriers(Barriers),
}

impl<G: StreamGuard> CallOnStream<G> {
    /// Starts the call. Returns `None` if it was lost.
    // Without optimisation, inlining would add this frame to the caller's.
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline(never))]
    pub fn begin(mut call: StreamCall, guard: G) -> Option<Self> {
        let spec = &call.site.spec;
        if spec.clock == Clock::Sync {
            let strong = guard.upgrade();
            let barriers = Barriers::open(&call, Life::of(&strong))?;
            drop(strong);
            let timing = StreamTiming::Barriers(barriers);
            return Some(CallOnStream { call, guard, started: None, timing });
        }
        call.running = open_brackets::begin(call.site);
        let started = HostStart::of(&call);
        let timing = match spec.scope {
            ScopeKind::Launches => StreamTiming::Launches(CallState::default()),
            ScopeKind::Body => {
                let strong = guard.upgrade();
                StreamTiming::Body(call.open_body(Life::of(&strong)))
            }
        };
        Some(CallOnStream { call, guard, started, timing })
    }

    /// Opens the bracket around a launch. Returns `None` if launches are not timed individually, or if the
    /// launch was lost.
    #[inline]
    pub fn open_launch(&self, launch: u32) -> Option<OpenLaunch> {
        let StreamTiming::Launches(state) = &self.timing else { return None };
        let strong = self.guard.upgrade();
        self.call.open_launch(launch, state, Life::of(&strong))
    }

    pub fn end(&mut self, lost: Option<Lost>, timing: &mut CostGuard<'_>) -> CallId {
        let CallOnStream { call, guard, started, .. } = self;
        match &mut self.timing {
            StreamTiming::Launches(state) => {
                open_brackets::leave(call.running);
                call.end_launches(state, lost, *started);
            }
            StreamTiming::Body(bracket) => {
                match (bracket.take(), lost) {
                    (None, _) => {}
                    (Some(bracket), Some(reason)) => abandon(call.thread, bracket, reason),
                    (Some(bracket), None) => {
                        let strong = guard.upgrade();
                        call.close(bracket, Life::of(&strong), *started);
                    }
                }
                open_brackets::leave(call.running);
            }
            StreamTiming::Barriers(barriers) => match lost {
                Some(reason) => barriers.abandon(call, reason),
                None => {
                    timing.waits();
                    let strong = guard.upgrade();
                    barriers.close(call, Life::of(&strong));
                }
            },
        }
        call.call_id
    }

    /// Notes that the function is suspended.
    pub fn pause(&self) {
        let open_on = open_brackets::leave(self.call.running);
        if let StreamTiming::Launches(state) = &self.timing {
            state.suspend(open_on.is_some());
        }
    }

    /// Notes that the suspended function runs again, with the bracket that it had open.
    pub fn resume(&self) {
        let open_on = match &self.timing {
            StreamTiming::Launches(state) => {
                state.was_in_launch().then(|| self.call.stream_state())
            }
            StreamTiming::Body(bracket) => {
                bracket.as_ref().map(|bracket| bracket.subject.stream_state)
            }
            StreamTiming::Barriers(_) => None,
        };
        open_brackets::set(self.call.running, open_on);
    }
}
