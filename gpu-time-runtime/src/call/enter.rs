//! Entry points for calls: one function for each way of timing, chosen by the macro.
//!
//! Each one uses [`decide`] to determine whether and where to time the call, then starts it.
//! Untimed calls are handled inline, which is cheaper than calling the runtime and avoids spilling
//! registers needed only for timing.

use crate::base::inside;
use crate::call::brackets::{BodyCall, LaunchesCall};
use crate::call::decide::{self, Admitted, Ticket};
use crate::call::host::{HostCall, StreamOrHost, StreamTimed};
use crate::call::kernels::{self, KernelsCall};
use crate::call::source::{Details, Source, Work};
use crate::call::{
    barriers::SyncCall,
    opened,
    scope::{Scope, Untimed},
    stream::StreamGuard,
};
use crate::site::{callsite::CallSite, cost::CostTimer};

/// Starts a call whose launches are timed individually.
#[inline(always)]
pub fn enter_launches<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::untimed, |admitted| begin(admitted, details))
}

/// Starts a call to a function with `graph`. During a capture, its launches become timed graph
/// nodes; otherwise they are timed individually.
#[inline(always)]
pub fn enter_graph<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit_graph(site, source)
        .map_or_else(Scope::untimed, |admitted| begin(admitted, details))
}

/// Starts a call whose whole body is timed by an event pair.
#[inline(always)]
pub fn enter_body<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::untimed, |admitted| begin(admitted, details))
}

/// Starts a call that is timed on the host between two barriers on its stream.
#[inline(always)]
pub fn enter_sync<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::untimed, |admitted| begin(admitted, details))
}

/// Starts a call that is timed only by the host clock.
#[inline(always)]
pub fn enter_host<D: Details>(site: &'static CallSite, details: D) -> Scope<HostCall<D::Work>> {
    decide::draw(site).map_or_else(Scope::untimed, |ticket| begin_host(ticket, details))
}

/// Starts a call that needs no stream: the kernels that it enqueues are timed by CUPTI.
#[inline(always)]
pub fn enter_kernels<D: Details>(
    site: &'static CallSite,
    details: D,
) -> Scope<KernelsCall<D::Work>> {
    decide::draw(site).map_or_else(Scope::untimed, |ticket| begin_kernels(ticket, details))
}

#[inline(never)]
fn begin<G: StreamGuard, D: Details, S: StreamTimed<G, D::Work>>(
    admitted: Admitted<G>,
    details: D,
) -> Scope<StreamOrHost<S, D::Work>> {
    // A call that interrupts the runtime is skipped, as its ticket counts it.
    let Some(_inside) = inside::try_enter() else {
        return Scope::untimed(Untimed::PLAIN);
    };
    let Admitted { ticket, source, is_captured } = admitted;
    let cost = CostTimer::sample(&ticket.site.cost);
    let mut timing = cost.start();
    if S::WAITS {
        timing.waits();
    }
    let is_async = ticket.site.spec.is_async;
    let call = match source {
        Source::Stream(source) => decide::stream_call(ticket, source, is_captured, details)
            .and_then(|(call, guard, work)| {
                match opened::enter_stream(&call, &guard, work.get(), is_captured) {
                    Some(opened) => Some(StreamOrHost::Opened(opened)),
                    None => S::begin(call, guard, work).map(StreamOrHost::Stream),
                }
            }),
        Source::Host => HostCall::begin(ticket, details).map(StreamOrHost::Host),
    };
    drop(timing);
    let nests = !is_async && matches!(call, Some(StreamOrHost::Stream(_)));
    Scope::of(call, is_async, nests, cost)
}

#[inline(never)]
fn begin_host<D: Details>(ticket: Ticket, details: D) -> Scope<HostCall<D::Work>> {
    let Some(_inside) = inside::try_enter() else {
        return Scope::untimed(Untimed::PLAIN);
    };
    let cost = CostTimer::sample(&ticket.site.cost);
    let is_async = ticket.site.spec.is_async;
    let timing = cost.start();
    let call = HostCall::begin(ticket, details);
    drop(timing);
    Scope::of(call, is_async, false, cost)
}

#[inline(never)]
fn begin_kernels<D: Details>(ticket: Ticket, details: D) -> Scope<KernelsCall<D::Work>> {
    let Some(_inside) = inside::try_enter() else {
        return Scope::untimed(Untimed::PLAIN);
    };
    let cost = CostTimer::sample(&ticket.site.cost);
    let is_async = ticket.site.spec.is_async;
    let timing = cost.start();
    let call = kernels::begin(ticket, details);
    drop(timing);
    Scope::of(call, is_async, false, cost)
}
