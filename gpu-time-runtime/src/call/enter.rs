//! The entry of a call: one function for each way of timing, chosen by the macro.
//!
//! Each one asks [`decide`] whether and where to time the call, and begins it accordingly. An
//! untimed call is handled inline, which is cheaper than calling the runtime and does not spill the
//! registers that only the timed path needs.

use crate::base::inside;
use crate::call::brackets::{BodyCall, LaunchesCall};
use crate::call::decide::{self, Admitted, Ticket};
use crate::call::host::{HostCall, StreamOrHost, StreamTimed};
use crate::call::source::{Details, Source};
use crate::call::{barriers::SyncCall, scope::Scope, stream::StreamGuard};
use crate::site::{callsite::CallSite, cost::CostTimer};

/// Begins a call whose launches are timed one by one.
#[inline(always)]
pub fn enter_launches<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::none, |admitted| begin(admitted, details))
}

/// Begins a call of a function with `graph`: during a capture its launches become timed nodes of the
/// graph, otherwise they are timed one by one.
#[inline(always)]
pub fn enter_graph<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    decide::admit_graph(site, source).map_or_else(Scope::none, |admitted| begin(admitted, details))
}

/// Begins a call whose body is timed as a whole by a pair of events.
#[inline(always)]
pub fn enter_body<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::none, |admitted| begin(admitted, details))
}

/// Begins a call that is timed on the host between two barriers on its stream.
#[inline(always)]
pub fn enter_sync<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    decide::admit(site, source).map_or_else(Scope::none, |admitted| begin(admitted, details))
}

/// Begins a call that is timed by the host clock alone.
#[inline(always)]
pub fn enter_host<D: Details>(site: &'static CallSite, details: D) -> Scope<HostCall<D::Work>> {
    decide::draw(site).map_or_else(Scope::none, |ticket| begin_host(ticket, details))
}

#[inline(never)]
fn begin<G: StreamGuard, D: Details, S: StreamTimed<G, D::Work>>(
    admitted: Admitted<G>,
    details: D,
) -> Scope<StreamOrHost<S, D::Work>> {
    // A call that interrupts the runtime is skipped, as its ticket counts it.
    let Some(_inside) = inside::try_enter() else { return Scope::none() };
    let Admitted { ticket, source, is_captured } = admitted;
    let cost = CostTimer::sample(&ticket.site.cost);
    let mut timing = cost.start();
    if S::WAITS {
        timing.waits();
    }
    let call = match source {
        Source::Stream(source) => decide::stream_call(ticket, source, is_captured, details)
            .and_then(|(call, guard, work)| S::begin(call, guard, work))
            .map(StreamOrHost::Stream),
        Source::Host => HostCall::begin(ticket, details).map(StreamOrHost::Host),
    };
    drop(timing);
    Scope::of(call, cost)
}

#[inline(never)]
fn begin_host<D: Details>(ticket: Ticket, details: D) -> Scope<HostCall<D::Work>> {
    let Some(_inside) = inside::try_enter() else { return Scope::none() };
    let cost = CostTimer::sample(&ticket.site.cost);
    let timing = cost.start();
    let call = HostCall::begin(ticket, details);
    drop(timing);
    Scope::of(call, cost)
}
