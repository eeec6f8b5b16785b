//! The entry of a call: one function for each way of timing, chosen by the macro.
//!
//! Each one asks [`decide`] whether and where to time the call, and begins it accordingly. An
//! untimed call is handled inline, which is cheaper than calling the runtime and does not spill the
//! registers that only the timed path needs.

use crate::call::barriers::SyncCall;
use crate::call::body::BodyCall;
use crate::call::decide::{self, Admission, Entry};
use crate::call::host::HostCall;
use crate::call::launches::LaunchesCall;
use crate::call::scope::Scope;
use crate::call::source::{Details, Source};
use crate::call::stream::StreamGuard;
use crate::call::stream_timed::StreamTimed;
use crate::site::callsite::CallSite;
use crate::site::cost::CostTimer;

/// Begins a call whose launches are timed one by one.
#[inline(always)]
pub fn enter_launches<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin(admission, source, details),
        None => Scope::none(),
    }
}

/// Begins a call of a function with `graph`: during a capture its launches become timed nodes of the
/// graph, otherwise they are timed one by one.
#[inline(always)]
pub fn enter_graph<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    match decide::admit_graph(site) {
        Some(admission) => begin_graph(admission, source, details),
        None => Scope::none(),
    }
}

/// Begins a call whose body is timed as a whole by a pair of events.
#[inline(always)]
pub fn enter_body<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin(admission, source, details),
        None => Scope::none(),
    }
}

/// Begins a call that is timed on the host between two barriers on its stream.
#[inline(always)]
pub fn enter_sync<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin(admission, source, details),
        None => Scope::none(),
    }
}

/// Begins a call that is timed by the host clock alone.
#[inline(always)]
pub fn enter_host<D: Details>(site: &'static CallSite, details: D) -> Scope<HostCall<D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin_host(admission, details),
        None => Scope::none(),
    }
}

#[inline(never)]
fn begin<G: StreamGuard, D: Details, C: StreamTimed<G, D::Work>>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<C> {
    let cost = CostTimer::sample(&admission.site().cost);
    let mut timing = cost.start();
    if C::WAITS {
        timing.waits();
    }
    let entry = decide::entry(&mut admission, source);
    let call = begin_at(admission, entry, details);
    drop(timing);
    Scope::of(call, cost)
}

/// Begins a call of a site with `graph`. Its cost timer starts after the stream is known, because
/// untimed calls pay for that lookup too.
#[inline(never)]
fn begin_graph<G: StreamGuard, D: Details, C: StreamTimed<G, D::Work>>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<C> {
    let site = admission.site();
    let entry = decide::graph_entry(&mut admission, source);
    let cost = CostTimer::sample(&site.cost);
    let timing = cost.start();
    let call = begin_at(admission, entry, details);
    drop(timing);
    Scope::of(call, cost)
}

#[inline(never)]
fn begin_host<D: Details>(admission: Admission, details: D) -> Scope<HostCall<D::Work>> {
    let cost = CostTimer::sample(&admission.site().cost);
    let timing = cost.start();
    let call = HostCall::begin(admission, details);
    drop(timing);
    Scope::of(call, cost)
}

#[inline(always)]
fn begin_at<G: StreamGuard, D: Details, C: StreamTimed<G, D::Work>>(
    admission: Admission,
    entry: Entry<G>,
    details: D,
) -> Option<C> {
    match entry {
        Entry::Stream(stream) => decide::timed_call(admission, stream, details, C::on_stream)?,
        Entry::Host => HostCall::begin(admission, details).map(C::on_host),
        Entry::Untimed => None,
    }
}
