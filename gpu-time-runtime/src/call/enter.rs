//! The entry of a call: one function for each way of timing, chosen by the macro.
//!
//! Each one asks [`decide`] whether to time the call and where, and begins the call that fits. A call
//! that is not timed stays in the caller: that costs less than a call of ours, and it does not spill
//! the registers that only the timed path needs.

use crate::call::barriers::SyncCall;
use crate::call::body::BodyCall;
use crate::call::decide::{self, Admission, Entry};
use crate::call::host::HostCall;
use crate::call::launches::LaunchesCall;
use crate::call::scope::Scope;
use crate::call::source::{Details, Source};
use crate::call::stream::StreamGuard;
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
        Some(admission) => begin_launches(admission, source, details),
        None => Scope::none(),
    }
}

#[inline(never)]
fn begin_launches<G: StreamGuard, D: Details>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    let cost = CostTimer::sample(&admission.site().cost);
    let timing = cost.start();
    let call = match decide::entry(&mut admission, source) {
        Entry::Stream(stream) => decide::timed_call(admission, stream, details, LaunchesCall::new),
        Entry::Host => HostCall::begin(admission, details).map(LaunchesCall::Host),
        Entry::Untimed => None,
    };
    drop(timing);
    Scope::of(call, cost)
}

/// The same for a function with `graph`: calls during a capture put timing nodes into the graph.
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

#[inline(never)]
fn begin_graph<G: StreamGuard, D: Details>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<LaunchesCall<G, D::Work>> {
    let site = admission.site();
    let entry = decide::graph_entry(&mut admission, source);
    let cost = CostTimer::sample(&site.cost);
    let timing = cost.start();
    let call = match entry {
        Entry::Stream(stream) => decide::timed_call(admission, stream, details, LaunchesCall::new),
        Entry::Host => HostCall::begin(admission, details).map(LaunchesCall::Host),
        Entry::Untimed => None,
    };
    drop(timing);
    Scope::of(call, cost)
}

/// Begins a call whose body is timed as a whole by a pair of events.
#[inline(always)]
pub fn enter_body<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin_body(admission, source, details),
        None => Scope::none(),
    }
}

#[inline(never)]
fn begin_body<G: StreamGuard, D: Details>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<BodyCall<G, D::Work>> {
    let cost = CostTimer::sample(&admission.site().cost);
    let timing = cost.start();
    let call = match decide::entry(&mut admission, source) {
        Entry::Stream(stream) => decide::timed_call(admission, stream, details, BodyCall::new),
        Entry::Host => HostCall::begin(admission, details).map(BodyCall::Host),
        Entry::Untimed => None,
    };
    drop(timing);
    Scope::of(call, cost)
}

/// Begins a call that is timed on the host between two barriers on its stream.
#[inline(always)]
pub fn enter_sync<G: StreamGuard, D: Details>(
    site: &'static CallSite,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    match decide::admit(site) {
        Some(admission) => begin_sync(admission, source, details),
        None => Scope::none(),
    }
}

#[inline(never)]
fn begin_sync<G: StreamGuard, D: Details>(
    mut admission: Admission,
    source: impl FnOnce() -> Source<G>,
    details: D,
) -> Scope<SyncCall<G, D::Work>> {
    let cost = CostTimer::sample(&admission.site().cost);
    let mut timing = cost.start();
    let call = match decide::entry(&mut admission, source) {
        Entry::Stream(stream) => {
            timing.waits();
            decide::timed_call(admission, stream, details, SyncCall::new).flatten()
        }
        Entry::Host => HostCall::begin(admission, details).map(SyncCall::Host),
        Entry::Untimed => None,
    };
    drop(timing);
    Scope::of(call, cost)
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
fn begin_host<D: Details>(admission: Admission, details: D) -> Scope<HostCall<D::Work>> {
    let cost = CostTimer::sample(&admission.site().cost);
    let timing = cost.start();
    let call = HostCall::begin(admission, details);
    drop(timing);
    Scope::of(call, cost)
}
