//! Entry points for calls: one function for each way of timing, chosen by the macro.
//!
//! Each one uses [`decide`] to determine whether and where to time the call, then starts it.
//! Untimed calls are handled inline, which is cheaper than calling the runtime and avoids spilling
//! registers needed only for timing.

use crate::base::inside;
use crate::call::brackets::{BodyCall, LaunchesCall};
use crate::call::decide::{self, AdmittedCall, StreamQuery};
use crate::call::host::HostCall;
use crate::call::kernels::{self, KernelsCall};
use crate::call::source::{Details, Source, Work};
use crate::call::ticket::Ticket;
use crate::call::{
    barriers::SyncCall,
    default_stream::{self, DefaultGuard},
    opened::{self, StreamTiming},
    scope::{Scope, TimedCall},
    stream::StreamGuard,
    timed_by::{StreamTimed, TimedBy},
};
use crate::record::{
    self,
    opened::{is_inside, is_late, outermost},
};
use crate::site::{callsite::CallSite, cost::CostTimer};
use crate::types::attribute::Clock;

/// Starts a call whose launches are timed individually.
#[inline(always)]
pub fn enter_launches<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit(site, source).scope(site, |admitted| begin(admitted, details))
}

/// Starts a call to a function with `graph`. During a capture, its launches become timed graph
/// nodes; otherwise they are timed individually.
#[inline(always)]
pub fn enter_graph<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit_graph(site, source).scope(site, |admitted| begin(admitted, details))
}

/// Starts a call whose whole body is timed by an event pair.
#[inline(always)]
pub fn enter_body<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    decide::admit(site, source).scope(site, |admitted| begin(admitted, details))
}

/// Starts a call that is timed on the host between two barriers on its stream.
#[inline(always)]
pub fn enter_sync<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    decide::admit(site, source).scope(site, |admitted| begin(admitted, details))
}

/// Starts a call that is timed only by the host clock.
#[inline(always)]
pub fn enter_host<D: Details>(site: &'static CallSite, details: D) -> Scope<HostCall<D::Work>> {
    decide::draw(site).scope(site, |ticket| begin_host(ticket, details))
}

/// Starts a call that needs no stream: the kernels that it enqueues are timed by CUPTI.
#[inline(always)]
pub fn enter_kernels<D: Details>(
    site: &'static CallSite,
    details: D,
) -> Scope<KernelsCall<D::Work>> {
    decide::draw(site).scope(site, |ticket| begin_kernels(ticket, details))
}

/// Starts a call to a function that names no stream: timed by events on the default stream if there is
/// one, or else like [`enter_kernels`].
#[inline(always)]
pub fn enter_unnamed<D: Details>(
    site: &'static CallSite,
    details: D,
) -> Scope<BodyCall<DefaultGuard, D::Work>> {
    decide::draw(site).scope(site, |ticket| match default_stream::current() {
        Some(source) => begin(AdmittedCall { ticket, source, is_captured: false }, details),
        None => begin_kernels(ticket, details),
    })
}

#[inline(never)]
fn begin<G: StreamGuard, D: Details, S: StreamTimed<G, D::Work>>(
    admitted: AdmittedCall<G>,
    details: D,
) -> Scope<TimedBy<S, D::Work>> {
    // A call that interrupts the runtime is not timed. Dropping its ticket counts it as skipped.
    let Some(_inside) = inside::try_enter() else {
        return Scope::plain();
    };
    record::opened::refresh();
    let AdmittedCall { ticket, source, is_captured } = admitted;
    let cost = cost_timer(ticket.site);
    let mut running = cost.start();
    if S::WAITS {
        running.waits();
    }
    let site = ticket.site;
    let call = match source {
        Source::Stream(_) if !is_captured && is_late() => {
            opened::enter_late(decide::count_late(ticket)).map(TimedBy::Kernels)
        }
        Source::Stream(source) => decide::stream_call(ticket, source, is_captured, details)
            .and_then(|(call, guard, work)| {
                let may_open = site.spec.clock != Clock::Kernels || default_stream::may_open();
                let timing = if may_open {
                    opened::enter_stream(&call, &guard, work.get(), is_captured)
                } else {
                    StreamTiming::Events
                };
                match timing {
                    StreamTiming::Opened(opened) => Some(TimedBy::Kernels(opened)),
                    StreamTiming::Events => S::begin(call, guard, work).map(TimedBy::Stream),
                    StreamTiming::Lost => None,
                }
            }),
        Source::Host => HostCall::begin(ticket, details).map(TimedBy::Host),
        Source::Unknown(stream) => {
            // Only the first type is reported.
            _ = site.unknown_stream.set(stream);
            None
        }
    };
    drop(running);
    Scope::of(site, call, cost)
}

#[inline(never)]
fn begin_host<D: Details>(ticket: Ticket, details: D) -> Scope<HostCall<D::Work>> {
    let Some(_inside) = inside::try_enter() else {
        return Scope::plain();
    };
    let site = ticket.site;
    let cost = CostTimer::sample(&site.cost);
    let timing = cost.start();
    let call = HostCall::begin(ticket, details);
    drop(timing);
    Scope::of(site, call, cost)
}

#[inline(never)]
fn begin_kernels<S: TimedCall, D: Details>(
    ticket: Ticket,
    details: D,
) -> Scope<TimedBy<S, D::Work>> {
    let Some(_inside) = inside::try_enter() else {
        return Scope::plain();
    };
    let site = ticket.site;
    let cost = cost_timer(site);
    let timing = cost.start();
    record::opened::refresh();
    let Some(opening) = decide::opening(ticket) else {
        return Scope::passed_over(site);
    };
    let call = kernels::begin(opening, details);
    drop(timing);
    Scope::of(site, call.map(KernelsCall::widened), cost)
}

/// Returns the timer for the cost of a call. Inside an opened call, it is the timer of the outermost
/// function.
#[inline(always)]
fn cost_timer(site: &'static CallSite) -> CostTimer {
    match is_inside().then(outermost).flatten() {
        Some(outermost) => CostTimer::sample_inner(&outermost.cost),
        None => CostTimer::sample(&site.cost),
    }
}
