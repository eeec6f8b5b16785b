//! Decides whether to time a call, and counts the call by outcome.
//!
//! The steps are, in order: the switch and the filter, sampling, the stream, warm-up. Sites with
//! `graph` look up the stream before sampling. For each site, a thread has a [skip
//! counter](crate::site::counters): how many of its next calls to skip, in a sampling gap or as
//! warm-up calls in one context. A skipped call needs no other check.

use std::sync::atomic::Ordering::Relaxed;

use crate::base::{fork, inside, switches, switches::Timing};
use crate::call::first;
use crate::call::scope::Decided;
use crate::call::source::{Details, Leases, Source, StreamSource, Work};
use crate::call::stream::{Life, StreamGuard};
use crate::control::budget_control;
use crate::cuda::{self, Context};
use crate::record::threads::{self, StreamCall};
use crate::record::{opened, running::RunningCall, timeline};
use crate::site::counters::{CallCounters, Lease, Outcome};
use crate::site::{callsite::CallSite, cost};
#[cfg(feature = "tracing")]
use crate::stats::sampling::happens;
use crate::types::{device::DeviceId, key::SeriesKey};

/// The longest sampling gap, in calls. The rate is read again after each gap. Gaps are shorter with a
/// budget, because the budget changes the rate.
const LONGEST_GAP: u64 = 4_096;
const LONGEST_GAP_WITH_BUDGET: u64 = 64;
/// The maximum number of warm-up calls that a thread leases at a time.
const MAX_LEASE: u32 = 256;

/// A call that will be timed unless warm-up or the context prevents it, with its stream and
/// context.
pub(crate) struct Admitted<G> {
    pub ticket: Ticket,
    pub source: Source<G>,
    /// The call is captured into a graph. It does not count as warm-up, because the graph's shape
    /// would then depend on the number of earlier calls.
    pub is_captured: bool,
}

/// Counts one call.
///
/// Invariant: each call is counted exactly once, when this is dropped. It counts as skipped unless
/// another outcome has been set, so a panic in one of the user's expressions leaves the call
/// counted as skipped.
pub(crate) struct Ticket {
    pub site: &'static CallSite,
    /// The thread's counters of the site, if they are allocated.
    counters: Option<&'static CallCounters>,
    /// The number of calls that this call represents.
    weight: f32,
    outcome: Outcome,
}

impl Ticket {
    #[inline(always)]
    fn new(site: &'static CallSite, weight: f32) -> Ticket {
        Ticket { site, counters: threads::counters(site), weight, outcome: Outcome::Skipped }
    }

    /// Counts the call with the given outcome.
    #[inline(always)]
    pub fn count_as(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Counts the call as timed and returns its weight.
    #[inline(always)]
    pub fn time(mut self) -> f32 {
        self.outcome = Outcome::Timed;
        self.weight
    }
}

impl Drop for Ticket {
    #[inline(always)]
    fn drop(&mut self) {
        count_in(self.counters, self.site, self.outcome);
    }
}

/// Makes the part of the timing decision that does not need the context. Counts the call if it is
/// not timed.
///
/// Inlined into the caller, together with everything else that an untimed call does, so that such a
/// call makes no function call. Without optimisation, inlining would add this frame to the caller's,
/// which stays on the stack while the driver runs.
#[cfg_attr(not(debug_assertions), inline(always))]
#[cfg_attr(debug_assertions, inline(never))]
pub(crate) fn admit<G>(
    site: &'static CallSite,
    source: impl FnOnce(Leases) -> Option<Source<G>>,
) -> Decided<Admitted<G>> {
    let ticket = match draw(site) {
        Decided::Timed(ticket) => ticket,
        Decided::Plain => return Decided::Plain,
        Decided::Observed => return Decided::Observed,
    };
    let Some(source) = source(Leases::of(site, ticket.counters)) else {
        ticket.count_as(Outcome::Warmup);
        timeline::warmup(site);
        return Decided::untimed();
    };
    Decided::Timed(Admitted { ticket, source, is_captured: false })
}

/// [`admit`] for a site with `graph`, whose captured calls are timed regardless of sampling. If a
/// graph is captured again, it must keep its shape. Therefore such calls are timed even while
/// timing is switched off, provided that the site's captures have nodes.
#[inline(always)]
pub(crate) fn admit_graph<G: StreamGuard>(
    site: &'static CallSite,
    source: impl FnOnce(Leases) -> Option<Source<G>>,
) -> Decided<Admitted<G>> {
    if !is_wanted(site) && !may_need_nodes(site) {
        count(site, Outcome::Skipped);
        return Decided::Plain;
    }
    match admit_captured(site, source) {
        Some(admitted) => Decided::Timed(admitted),
        None => Decided::untimed(),
    }
}

#[inline(never)]
fn admit_captured<G: StreamGuard>(
    site: &'static CallSite,
    source: impl FnOnce(Leases) -> Option<Source<G>>,
) -> Option<Admitted<G>> {
    let mut ticket = Ticket::new(site, 1.0);
    // This time is not attributed to timed calls alone, because every call of the site incurs it.
    let timing = cost::time_decision(&site.cost);
    let source = source(Leases::NONE);
    drop(timing);
    let source = source?;
    let is_on = is_wanted(site);
    let _inside = inside::try_enter()?;
    let is_captured = match &source {
        Source::Stream(StreamSource { stream, context, guard, .. }) => {
            let strong = guard.upgrade();
            Life::of(&strong).obstacle().is_none()
                && cuda::is_captured(*stream, *context)
                && !cuda::is_recording()
        }
        Source::Host => false,
    };
    if is_captured {
        return (is_on || site.gets_nodes(false)).then_some(Admitted {
            ticket,
            source,
            is_captured,
        });
    }
    if !is_on {
        return None;
    }
    if site.is_sampled() {
        match draw_slowly(site, threads::counters(site)) {
            Ok(weight) => ticket.weight = weight,
            Err(outcome) => {
                ticket.count_as(outcome);
                return None;
            }
        }
    }
    Some(Admitted { ticket, source, is_captured })
}

/// Decides based on the switch, the filter and sampling. Counts the call if it is not timed.
#[inline(always)]
pub(crate) fn draw(site: &'static CallSite) -> Decided<Ticket> {
    match weigh(site) {
        Decided::Timed(weight) => Decided::Timed(Ticket::new(site, weight)),
        Decided::Plain => Decided::Plain,
        Decided::Observed => Decided::Observed,
    }
}

/// Returns the weight of a call that is to be timed. Counts the call if it is not.
///
/// Steps that are not inlined return only the weight, so that the state of the call can stay in
/// registers.
#[inline(always)]
fn weigh(site: &'static CallSite) -> Decided<f32> {
    let Some(timing) = wanted(site) else {
        count(site, Outcome::Skipped);
        return Decided::Plain;
    };
    if !site.is_sampled() {
        return Decided::Timed(1.0);
    }
    if cfg!(any(feature = "kernels", feature = "nvtx")) && !timing.is_plain() {
        return weigh_while_observed(site);
    }
    match sample(site) {
        Some(weight) => Decided::Timed(weight),
        None => Decided::Plain,
    }
}

/// [`weigh`] for a sampled site while a call is opened, a window is open or about to open, or an NVTX
/// tool listens.
#[cold]
fn weigh_while_observed(site: &'static CallSite) -> Decided<f32> {
    if opened::is_inside() {
        // Sampling chose the call around this one.
        return Decided::Timed(1.0);
    }
    match sample(site) {
        Some(weight) => Decided::Timed(weight),
        None => Decided::Observed,
    }
}

/// Decides based on sampling. Counts the call if it is not timed.
#[inline(always)]
fn sample(site: &'static CallSite) -> Option<f32> {
    let counters = threads::counters(site);
    if let Some(counters) = counters
        && counters.pass_over(0, site.rate.epoch())
    {
        counters.count(Outcome::Unsampled);
        return None;
    }
    draw_and_count(site, counters)
}

#[cold]
fn draw_and_count(site: &'static CallSite, counters: Option<&'static CallCounters>) -> Option<f32> {
    let Some(_inside) = inside::try_enter() else {
        count(site, Outcome::Skipped);
        return None;
    };
    draw_slowly(site, counters).map_err(|outcome| count(site, outcome)).ok()
}

#[inline]
fn is_wanted(site: &'static CallSite) -> bool {
    wanted(site).is_some()
}

/// Returns the reading of the switch if it is on and the filter admits the site.
#[inline(always)]
fn wanted(site: &'static CallSite) -> Option<Timing> {
    let mut timing = switches::timing();
    if !site.is_on() {
        if site.is_configured() || !first::first_call(site) {
            return None;
        }
        // The first call of any annotated function reads the settings, which may turn timing off or
        // attach an NVTX tool.
        timing = switches::timing();
    }
    timing.is_on().then_some(timing)
}

#[cold]
fn may_need_nodes(site: &'static CallSite) -> bool {
    // A site excluded by the filter before its first capture never gets nodes.
    let may_have = site.has_nodes().unwrap_or(site.is_on());
    may_have && !switches::is_closed() && !cuda::is_recording()
}

/// Decides by sampling. Returns the weight for a timed call, or the outcome to count.
#[inline(never)]
fn draw_slowly(
    site: &'static CallSite,
    known: Option<&'static CallCounters>,
) -> Result<f32, Outcome> {
    if fork::is_forked() {
        return Err(Outcome::Skipped);
    }
    let counters = known.or_else(|| threads::allocated_counters(site));
    // A new thread may reuse the recorder of a thread that ended in the middle of a gap.
    if counters.is_some_and(|counters| counters.pass_over(0, site.rate.epoch())) {
        return Err(Outcome::Unsampled);
    }
    if let Some(Lease { device, calls }) = counters.and_then(CallCounters::take_warmup) {
        // The lease was made before the site was sampled.
        site.warmups.give_back(device, SeriesKey::NONE, calls);
    }
    let has_budget = cost::is_on();
    let _timing = cost::time_decision(&site.cost);
    if has_budget {
        // Called before the draw, so that a new rate applies to this call.
        budget_control::tick(site, counters.map_or(1, CallCounters::decided));
    }
    let weight = match counters {
        Some(counters) => {
            let longest = if has_budget { LONGEST_GAP_WITH_BUDGET } else { LONGEST_GAP };
            counters.draw(site.rate.get(), site.rate.epoch(), longest)
        }
        None => site.shared_counters().draw(site.rate.get(), site.rate.epoch(), 0),
    };
    if has_budget && weight.is_some() {
        site.cost.count_timed();
    }
    weight.ok_or(Outcome::Unsampled)
}

/// Decides about a span, and counts it if it is not timed. Returns the probability of timing it.
///
/// `root` is the number of root spans that were passed over before it, if it was chosen as a root.
/// Any other span is timed whenever its root is.
#[cfg(feature = "tracing")]
pub(crate) fn span(site: &'static CallSite, root: Option<u64>) -> Option<f64> {
    if !is_wanted(site) {
        count(site, Outcome::Skipped);
        return None;
    }
    let Some(passed) = root.filter(|_| site.is_sampled()) else { return Some(1.0) };
    let has_budget = cost::is_on();
    if has_budget {
        budget_control::tick(site, 1 + passed);
    }
    let share = site.rate.get().rate();
    if !happens(share) {
        count_span(site, None, passed);
        return None;
    }
    if has_budget {
        site.cost.count_timed();
    }
    Some(share)
}

/// Counts a span, and the root spans that were `passed` over before its root. `weight` is the number of
/// spans that it represents, or `None` if it is not timed.
#[cfg(feature = "tracing")]
pub(crate) fn count_span(site: &'static CallSite, weight: Option<f64>, passed: u64) {
    match threads::allocated_counters(site) {
        Some(counters) => counters.count_span(weight, passed),
        None => site.shared_counters().count_span(weight, passed),
    }
}

/// Finds the context for a call on a stream, and starts timing the call. Returns `None` if there is
/// no context, or if this is a warm-up call.
// Without optimisation, inlining would add this frame to the caller's, which stays on the stack while
// the driver runs.
#[cfg_attr(not(debug_assertions), inline(always))]
#[cfg_attr(debug_assertions, inline(never))]
pub(crate) fn stream_call<G: StreamGuard, D: Details>(
    mut ticket: Ticket,
    source: StreamSource<G>,
    is_captured: bool,
    details: D,
) -> Option<(StreamCall, G, D::Work)> {
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
    let (key, rest) = series_key(site, details);
    if !site.is_plain() {
        first::prepare(site, context);
        let lease_in = if D::HAS_DETAILS { 0 } else { handle };
        if !is_captured && warms_up(&mut ticket, Some((context, lease_in)), key) {
            return None;
        }
    }
    let work = workload::<D>(site, rest);
    let weight = ticket.time();
    let (thread, call_id) = (threads::current(), timeline::begin(site));
    let running = RunningCall::default();
    let call = StreamCall { site, thread, context, stream, tracked, call_id, key, weight, running };
    Some((call, guard, work))
}

/// Evaluates a call's key. Returns it with the details that remain to be evaluated.
#[inline(always)]
pub(crate) fn series_key<D: Details>(site: &'static CallSite, details: D) -> (SeriesKey, D::Rest) {
    let (text, rest) = evaluate::<D, _>(|| details.key());
    (text.map_or(SeriesKey::NONE, |text| site.keys.find(&text)), rest)
}

/// Evaluates one of the user's expressions. Annotated functions that it calls are timed as usual.
#[inline(always)]
fn evaluate<D: Details, T>(expression: impl FnOnce() -> T) -> T {
    if D::HAS_DETAILS { inside::outside(expression) } else { expression() }
}

/// Evaluates a call's workload, and counts it if it is invalid.
#[inline(always)]
pub(crate) fn workload<D: Details>(site: &'static CallSite, rest: D::Rest) -> D::Work {
    let work = evaluate::<D, _>(|| D::work(rest));
    if work.get().is_invalid() {
        site.invalid_workloads.fetch_add(1, Relaxed);
    }
    work
}

/// Takes a warm-up call for the context's device, or for the host if there is no context. Returns
/// `false` if none is left. If many are left, the thread leases more, which its next calls in the
/// context use up without further checks. The second value of `on` is the handle by which those calls
/// identify the context, or 0 if they cannot use a lease.
#[inline(never)]
pub(crate) fn warms_up(
    ticket: &mut Ticket,
    on: Option<(&'static Context, usize)>,
    key: SeriesKey,
) -> bool {
    let site = ticket.site;
    let total = site.warmup();
    let device = on.map_or(DeviceId::Host, |(context, _)| context.device_id());
    let counters = threads::counters(site);
    if total == 0 || counters.is_some_and(|counters| counters.is_warm(device, key, total)) {
        return false;
    }
    // A lease applies to calls in one context, before their key is known. The program must not be
    // able to destroy that context, because the next one at its address may be on another device.
    let context = on.and_then(|(context, handle)| context.is_retained().then_some(handle));
    let can_lease = !site.is_sampled() && !site.spec.graph;
    let context = context.filter(|handle| *handle != 0 && can_lease && counters.is_some());
    // The rest of a lease that was taken in another context may be used in this one.
    if let Some(Lease { device, calls }) = counters.and_then(CallCounters::take_warmup) {
        site.warmups.give_back(device, SeriesKey::NONE, calls);
    }
    let taken =
        site.warmups.take(device, key, total, if context.is_some() { MAX_LEASE } else { 1 });
    match (counters, context, taken) {
        (Some(counters), _, 0) => counters.set_warm(device, key, total),
        (Some(counters), Some(context), 2..) => {
            counters.skip_warmup(Lease { device, calls: taken - 1 }, context, site.rate.epoch());
        }
        _ => {}
    }
    if taken > 0 {
        ticket.outcome = Outcome::Warmup;
        timeline::warmup(site);
    }
    taken > 0
}

/// Counts a call on the calling thread.
#[inline(always)]
fn count(site: &'static CallSite, outcome: Outcome) {
    count_in(threads::counters(site), site, outcome);
}

#[inline(always)]
fn count_in(counters: Option<&CallCounters>, site: &'static CallSite, outcome: Outcome) {
    match counters {
        Some(counters) => counters.count(outcome),
        None => count_slowly(site, outcome),
    }
}

#[cold]
fn count_slowly(site: &'static CallSite, outcome: Outcome) {
    if fork::is_forked() {
        // A forked child reports nothing, and another thread may have held a lock at the fork.
        return;
    }
    let entered = inside::try_enter();
    if entered.is_none() && outcome == Outcome::Skipped {
        // This call may have interrupted the runtime, even while it assigned the thread's counters.
        site.skipped_inside.fetch_add(1, Relaxed);
        return;
    }
    match threads::allocated_counters(site) {
        Some(counters) => counters.count(outcome),
        None => site.shared_counters().count(outcome),
    }
}
