//! Calls timed by event pairs: around the body, or around each launch.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::base::{fork, inside};
use crate::call::call_state::CallState;
use crate::call::host_start::HostStart;
use crate::call::scope::{Scope, TimedCall};
use crate::call::source::Work;
use crate::call::stream::{Life, StreamGuard};
use crate::call::stream_call::{GpuBracket, OpenLaunch, abandon};
use crate::call::timed_by::{StreamTimed, TimedBy};
use crate::record::open_brackets::{self, RunningCall};
use crate::record::opened;
use crate::record::{stream_state::StreamState, threads::StreamCall, timeline::CallId};
use crate::site::cost::CostGuard;
use crate::types::sample::Lost;

/// A call whose launches are timed individually.
pub type LaunchesCall<G, W> = TimedBy<LaunchBrackets<G, W>, W>;

/// The launches made by a call on a stream, with an event pair around each.
pub struct LaunchBrackets<G, W> {
    call: StreamCall,
    state: CallState,
    started: Option<HostStart>,
    guard: G,
    work: W,
}

/// A launch between its two events. If the token is dropped before the stop, the launch counts as
/// lost.
#[must_use]
pub struct Token(Option<OpenLaunch>);

const _: () = {
    const fn holds_across_awaits_and_unwinding<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    holds_across_awaits_and_unwinding::<Scope<LaunchesCall<(), ()>>>();
    holds_across_awaits_and_unwinding::<Scope<BodyCall<(), ()>>>();
    holds_across_awaits_and_unwinding::<Token>();
};

impl<G: StreamGuard, W: Work> StreamTimed<G, W> for LaunchBrackets<G, W> {
    #[inline(always)]
    fn begin(mut call: StreamCall, guard: G, work: W) -> Option<Self> {
        call.running = begin(&call);
        let (state, started) = (CallState::default(), HostStart::of(&call));
        Some(LaunchBrackets { call, state, started, guard, work })
    }
}

impl<G: StreamGuard, W: Work> Scope<LaunchesCall<G, W>> {
    /// Starts the launch with this index in
    /// [`Spec::launches`](crate::types::attribute::Spec::launches).
    #[inline]
    pub fn start(&self, launch: u32) -> Token {
        Token(match self.timed() {
            _ if fork::is_forked() => None,
            Some((LaunchesCall::Stream(launches), cost)) => {
                let _inside = inside::enter();
                let _timing = cost.start();
                let LaunchBrackets { call, state, guard, work, .. } = launches;
                let strong = guard.upgrade();
                call.open_launch(launch, state, Life::of(&strong), work.get())
            }
            Some((LaunchesCall::Kernels(opened), _)) => {
                Some(OpenLaunch::Opened(opened.start_launch()))
            }
            _ => None,
        })
    }

    fn close(&self, launch: OpenLaunch, has_failed: bool) {
        if fork::is_forked() {
            return;
        }
        let Some((LaunchesCall::Stream(LaunchBrackets { call, guard, .. }), cost)) = self.timed()
        else {
            // A launch of an opened call has no bracket that could be lost.
            return launch.abandon(Lost::Failed);
        };
        let _inside = inside::enter();
        let _timing = cost.start();
        if has_failed {
            return launch.abandon(Lost::Failed);
        }
        let strong = guard.upgrade();
        launch.close(call, Life::of(&strong));
    }
}

/// Stops a launch. `failed` returns `true` if the result shows that nothing was launched.
#[inline]
pub fn stop<R, G: StreamGuard, W: Work>(
    (mut token, result): (Token, R),
    scope: &Scope<LaunchesCall<G, W>>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    if let Some(launch) = token.0.take() {
        scope.close(launch, failed(&result));
    }
    result
}

/// Stops a launch that has no result.
#[inline]
pub fn stop_statement<G: StreamGuard, W: Work>(
    mut token: Token,
    scope: &Scope<LaunchesCall<G, W>>,
) {
    if let Some(launch) = token.0.take() {
        scope.close(launch, false);
    }
}

/// Runs if the function left the launch by unwinding, or by a `return` or `?` in one of its
/// arguments.
impl Drop for Token {
    fn drop(&mut self) {
        if let Some(launch) = self.0.take()
            && !fork::is_forked()
        {
            let _inside = inside::enter();
            launch.abandon(Lost::Failed);
        }
    }
}

impl<G: StreamGuard, W: Work> TimedCall for LaunchBrackets<G, W> {
    fn end(&mut self, lost: Option<Lost>, _: &mut CostGuard<'_>) -> CallId {
        open_brackets::leave(self.call.running);
        self.call.end_launches(&self.state, lost, self.started);
        self.call.call_id
    }

    fn pause(&self) {
        self.state.suspend(leave_thread(self.call.running).is_some());
    }

    fn resume(&self) {
        enter_thread(self.call.running, || {
            self.state.was_in_launch().then(|| self.call.stream_state())
        });
    }
}

/// A call whose body is timed as a whole.
pub type BodyCall<G, W> = TimedBy<Body<G>, W>;

/// The body of a call on a stream, with an event pair around it.
pub struct Body<G> {
    call: StreamCall,
    /// `None` if the bracket was lost at the start.
    bracket: Option<GpuBracket>,
    started: Option<HostStart>,
    guard: G,
}

impl<G: StreamGuard, W: Work> StreamTimed<G, W> for Body<G> {
    #[inline(always)]
    fn begin(mut call: StreamCall, guard: G, work: W) -> Option<Self> {
        call.running = begin(&call);
        let started = HostStart::of(&call);
        let strong = guard.upgrade();
        let bracket = call.open_body(Life::of(&strong), work.get());
        drop(strong);
        Some(Body { call, bracket, started, guard })
    }
}

impl<G: StreamGuard> TimedCall for Body<G> {
    fn end(&mut self, lost: Option<Lost>, _: &mut CostGuard<'_>) -> CallId {
        match (self.bracket.take(), lost) {
            (None, _) => {}
            (Some(bracket), Some(reason)) => abandon(self.call.thread, bracket, reason),
            (Some(bracket), None) => {
                let strong = self.guard.upgrade();
                self.call.close(bracket, Life::of(&strong), self.started);
            }
        }
        open_brackets::leave(self.call.running);
        self.call.call_id
    }

    fn pause(&self) {
        leave_thread(self.call.running);
    }

    fn resume(&self) {
        let stream = || self.bracket.as_ref().map(|bracket| bracket.subject.stream_state);
        enter_thread(self.call.running, stream);
    }
}

/// Notes that a call begins, unless it is inside an opened call, which already includes its time.
#[inline]
fn begin(call: &StreamCall) -> RunningCall {
    if opened::is_inside() { RunningCall::default() } else { open_brackets::begin(call.site) }
}

/// Notes that a function is suspended. Returns the stream of its open bracket, if it has one.
fn leave_thread(call: RunningCall) -> Option<&'static StreamState> {
    if fork::is_forked() {
        return None;
    }
    let _inside = inside::enter();
    open_brackets::leave(call)
}

/// Notes that a suspended function runs again. `bracket` returns the stream of its open bracket, if it has
/// one.
fn enter_thread(call: RunningCall, bracket: impl FnOnce() -> Option<&'static StreamState>) {
    if !fork::is_forked() {
        let _inside = inside::enter();
        open_brackets::set(call, bracket());
    }
}
