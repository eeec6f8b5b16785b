//! The two entries of a call: with and without a stream. What times the call is in the [`Spec`] of its site.
//!
//! Untimed calls are handled inline, which is cheaper than calling the runtime and avoids spilling
//! registers needed only for timing.
//!
//! [`Spec`]: crate::types::attribute::Spec

use crate::base::inside;
use crate::call::call_on_stream::CallOnStream;
use crate::call::counted_call::CountedCall;
use crate::call::decide::{self, StreamQuery, Untimed};
use crate::call::default_stream::{self, DefaultGuard};
use crate::call::source::{Details, Source, StreamSource};
use crate::call::stream::{Life, StreamGuard};
use crate::call::ticket::{Ticket, with_counters};
use crate::call::timed_call::TimedCall;
use crate::call::{first, host::HostCall, opened, scope::Scope};
use crate::record::open_brackets::RunningCall;
use crate::record::opened::{OpenedAs, OpenedFunction, is_inside, is_late, outermost};
use crate::record::phase::controller;
use crate::record::{self, threads::StreamCall, timeline};
use crate::site::cost::CostTimer;
use crate::site::{callsite::CallSite, counters::Outcome};
use crate::types::attribute::Clock;
use crate::{cuda, cupti};

/// Starts a call of a function with a stream.
#[inline(always)]
pub fn enter_on<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
    details: D,
) -> Scope<G> {
    let weight = match decide::decide(site) {
        Ok(weight) => weight,
        Err(untimed) => return Scope::untimed(site, untimed),
    };
    let mut ticket = Ticket::new(site, weight);
    match source(StreamQuery::about(&ticket)) {
        Some(source) => begin(&mut ticket, source, details),
        None => {
            ticket.count_as(Outcome::Warmup);
            timeline::warmup(site);
            Scope::untimed(site, Untimed::Observed)
        }
    }
}

/// Starts a call of a function without a stream.
#[inline(always)]
pub fn enter<D: Details>(site: &'static CallSite, details: D) -> Scope<DefaultGuard> {
    match decide::decide(site) {
        Ok(weight) => begin_without_stream(site, weight, details),
        Err(untimed) => Scope::untimed(site, untimed),
    }
}

#[inline(never)]
fn begin_without_stream<D: Details>(
    site: &'static CallSite,
    weight: f32,
    details: D,
) -> Scope<DefaultGuard> {
    let mut ticket = Ticket::new(site, weight);
    let source = if site.spec.takes_default { default_stream::current() } else { None };
    begin(&mut ticket, source.unwrap_or(Source::None), details)
}

#[inline(never)]
fn begin<G: StreamGuard, D: Details>(
    ticket: &mut Ticket,
    source: Source<G>,
    details: D,
) -> Scope<G> {
    let mut scope = Scope::plain();
    // A call that interrupts the runtime is not timed. Dropping its ticket counts it as skipped.
    let Some(_inside) = inside::try_enter() else { return scope };
    let site = ticket.site;
    if site.spec.graph && !decide::is_timed_on(&source, ticket) {
        scope.prepare(site, CostTimer::off());
    } else {
        record::opened::refresh();
        let (call, cost) = scope.prepare(site, cost_timer(site));
        let mut timing = cost.start();
        if site.spec.clock == Clock::Sync {
            timing.waits();
        }
        begin_timed(call, ticket, source, details);
    }
    scope.begin(site);
    scope
}

/// Returns the timer for the cost of a call. Inside an opened call, it is the timer of the outermost
/// function.
#[inline(always)]
fn cost_timer(site: &'static CallSite) -> CostTimer {
    match is_inside().then(outermost).flatten() {
        Some(outermost) => CostTimer::sample(&outermost.cost, true),
        None => CostTimer::sample(&site.cost, false),
    }
}

/// Starts timing a call, unless it is a warm-up call, was not chosen, or is lost.
///
/// Sets `timed` rather than to return the call, because a call has too many fields to move it several times.
#[inline(always)]
fn begin_timed<G: StreamGuard, D: Details>(
    timed: &mut Option<TimedCall<G>>,
    ticket: &mut Ticket,
    source: Source<G>,
    details: D,
) {
    let site = ticket.site;
    match source {
        Source::None if !site.needs_records() => begin_by_host(timed, ticket, details),
        Source::None | Source::Stream(_) if !ticket.is_captured && is_late() => {
            ticket.count_as(Outcome::Unsampled);
            *timed = opened::enter_late(site).map(TimedCall::Opened);
        }
        Source::None => begin_recorded(timed, ticket, details),
        Source::Stream(source) => begin_on(timed, source, ticket, details),
        // Only the first type is reported.
        Source::Unknown(stream) => _ = site.unknown_stream.set(stream),
    }
}

/// Starts a call by the host clock.
#[inline(always)]
fn begin_by_host<G, D: Details>(timed: &mut Option<TimedCall<G>>, ticket: &mut Ticket, details: D) {
    if let Some(call) = CountedCall::count(ticket, None, details) {
        *timed = Some(TimedCall::Host(HostCall::begin(call)));
    }
}

/// Starts a call on a stream: in the thread's opened call, by opening it, or between events or barriers.
#[inline(always)]
fn begin_on<G: StreamGuard, D: Details>(
    timed: &mut Option<TimedCall<G>>,
    source: StreamSource<G>,
    ticket: &mut Ticket,
    details: D,
) {
    let (site, is_captured) = (ticket.site, ticket.is_captured);
    let Some((call, guard)) = stream_call(source, ticket, details) else { return };
    let is_inside = is_inside();
    // Events on the default stream time a function that needs no more, and captured work does not run during the call.
    let may_open = !is_captured && (!site.needs_records() || controller::is_ordered());
    let opened_as = if is_inside || may_open { opened::opens(site) } else { None };
    if let Some(opened_as) = opened_as {
        let opened = opened::enter_on(&call, &guard, opened_as);
        if opened.is_some() || is_inside {
            return *timed = opened.map(TimedCall::Opened);
        }
    }
    if let Some(call) = CallOnStream::begin(call, guard) {
        *timed = Some(TimedCall::OnStream(call));
    }
}

/// Finds the context for a call on a stream, and counts the call. Returns `None` if there is no context, or if this is
/// a warm-up call.
// Without optimisation, inlining would add this frame to the caller's, which stays on the stack while
// the driver runs.
#[cfg_attr(not(debug_assertions), inline(always))]
#[cfg_attr(debug_assertions, inline(never))]
fn stream_call<G: StreamGuard, D: Details>(
    source: StreamSource<G>,
    ticket: &mut Ticket,
    details: D,
) -> Option<(StreamCall, G)> {
    let StreamSource { stream, context: handle, tracked, guard } = source;
    let site = ticket.site;
    let context = match cuda::recent(handle) {
        Some(context) => context,
        None => {
            let strong = guard.upgrade();
            match first::context(site, stream, handle, Life::of(&strong)) {
                Ok(context) => context,
                Err(outcome) => {
                    ticket.count_as(outcome);
                    return None;
                }
            }
        }
    };
    if !site.is_plain() {
        first::prepare(site, context);
    }
    let counted = CountedCall::count(ticket, Some((context, handle)), details)?;
    let CountedCall { thread, call_id, key, work, weight, .. } = counted;
    let running = RunningCall::default();
    let call =
        StreamCall { site, thread, context, stream, tracked, call_id, key, work, weight, running };
    Some((call, guard))
}

/// Starts a call that names no stream, and has no other times than those of its kernels: in the thread's opened call,
/// by opening it or, if none can be opened, by the host clock.
fn begin_recorded<G, D: Details>(
    timed: &mut Option<TimedCall<G>>,
    ticket: &mut Ticket,
    details: D,
) {
    let site = ticket.site;
    let is_inside = is_inside();
    if !is_inside && (!site.is_opened() || !cupti::is_available()) {
        if cupti::is_given_up() && site.was_opened() {
            // The calls that were recorded at the start stand for it.
            return ticket.count_as(Outcome::Unsampled);
        }
        return begin_by_host(timed, ticket, details);
    }
    // The weight with which the sampler chose the call, if it was asked.
    let drawn = (site.is_sampled() && !is_inside).then_some(ticket.weight);
    let Some(opened_as) = opened::opens(site) else {
        if let Some(drawn) = drawn {
            with_counters(site, |counters| counters.take_back_drawn(drawn));
        }
        return ticket.count_as(Outcome::Unsampled);
    };
    let Some(counted) = CountedCall::count(ticket, None, details) else {
        if opened_as == OpenedAs::First {
            site.opens_next();
        }
        return;
    };
    let CountedCall { key, work: workload, weight, call_id, .. } = counted;
    let subject = opened::without_stream(opened::series(site, key), call_id, opened_as);
    if let Some(call) = opened::enter(OpenedFunction { weight, workload, ..subject }) {
        if let Some(weight) = call.weight() {
            with_counters(site, |counters| counters.weigh_opened(drawn, weight));
        }
        *timed = Some(TimedCall::Opened(call));
    }
}
