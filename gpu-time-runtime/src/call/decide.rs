//! Decides whether a call is timed, and counts the call. No other module does either.
//!
//! Steps in order: the switch and the filter, sampling, the stream, warm-up. Sites with `graph`
//! learn the stream before sampling. Each thread has a [skip counter](crate::site::counters) with
//! the number of calls to skip next, by sampling or as warm-up in a context, so that a skipped call
//! needs no other check.

use crate::base::{fork, switches};
use crate::call::first;
use crate::call::source::{Details, Source, StreamSource, Work};
use crate::call::stream::StreamGuard;
use crate::control::budget_control;
use crate::cuda::{self, Context};
use crate::record::call::StreamCall;
use crate::record::{threads, timeline};
use crate::site::callsite::CallSite;
use crate::site::cost;
use crate::site::counters::{CallCounters, Lease, Outcome};
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;

/// Longest sampling gap, after which the rate is read again; shorter with a budget, which changes
/// the rate.
const LONGEST_GAP: u64 = 4_096;
const LONGEST_GAP_WITH_BUDGET: u64 = 64;

/// A call that will be timed unless its stream or its warm-up rules it out.
///
/// Invariant: the call is counted once, when this is dropped: as skipped, unless another outcome
/// was set before. A panic in one of the user's expressions thus leaves the call counted as
/// skipped.
pub(crate) struct Admission {
    site: &'static CallSite,
    /// The number of calls that this one represents.
    weight: f32,
    outcome: Outcome,
}

impl Admission {
    #[inline(always)]
    fn new(site: &'static CallSite, weight: f32) -> Admission {
        Admission { site, weight, outcome: Outcome::Skipped }
    }

    #[inline(always)]
    pub fn site(&self) -> &'static CallSite {
        self.site
    }

    /// Marks the call as timed, and returns its weight.
    #[inline(always)]
    pub fn time(mut self) -> f32 {
        self.outcome = Outcome::Timed;
        self.weight
    }
}

impl Drop for Admission {
    #[inline(always)]
    fn drop(&mut self) {
        count(self.site, self.outcome);
    }
}

/// Decides whether a call is timed, as far as possible without its stream. Counts the call if it is
/// not.
#[inline(always)]
pub(crate) fn admit(site: &'static CallSite) -> Option<Admission> {
    if !is_wanted(site) {
        count(site, Outcome::Skipped);
        return None;
    }
    if !site.is_sampled() {
        return Some(Admission::new(site, 1.0));
    }
    let counters = threads::counters(site);
    if let Some(counters) = counters
        && counters.pass_over(0, site.epoch())
    {
        counters.count(Outcome::Unsampled);
        return None;
    }
    admit_slowly(site, counters)
}

#[cold]
fn admit_slowly(
    site: &'static CallSite,
    counters: Option<&'static CallCounters>,
) -> Option<Admission> {
    match draw(site, counters) {
        Ok(weight) => Some(Admission::new(site, weight)),
        Err(outcome) => {
            count(site, outcome);
            None
        }
    }
}

/// [`admit`] for a site with `graph`, whose captured calls are timed regardless of sampling. A graph
/// that is captured again must keep its shape, so they are timed even while timing is switched off,
/// if the site's captures have nodes.
#[inline(always)]
pub(crate) fn admit_graph(site: &'static CallSite) -> Option<Admission> {
    if !is_wanted(site) && !may_need_nodes(site) {
        count(site, Outcome::Skipped);
        return None;
    }
    Some(Admission::new(site, 1.0))
}

#[inline]
fn is_wanted(site: &'static CallSite) -> bool {
    match site.is_on() {
        Some(on) => on && switches::is_on(),
        None => first::first_call(site) && switches::is_on(),
    }
}

#[cold]
fn may_need_nodes(site: &'static CallSite) -> bool {
    // A site that was filtered out before its first capture never gets nodes.
    let is_undecided = site.is_on() == Some(true) && !site.has_no_nodes();
    (is_undecided || site.has_nodes()) && !switches::is_closed() && !cuda::is_recording()
}

/// Decides by sampling. Returns the weight of a timed call, or the outcome to count.
#[inline(never)]
fn draw(site: &'static CallSite, known: Option<&'static CallCounters>) -> Result<f32, Outcome> {
    if fork::is_forked() {
        return Err(Outcome::Skipped);
    }
    let counters = known.or_else(|| {
        threads::current();
        threads::counters(site)
    });
    // A new thread may have the recorder of one that ended in the middle of a gap.
    if counters.is_some_and(|counters| counters.pass_over(0, site.epoch())) {
        return Err(Outcome::Unsampled);
    }
    if let Some(Lease { device, calls }) = counters.and_then(CallCounters::take_warmup) {
        // The lease is from before the site was sampled.
        site.warmups.give_back(device, SeriesKey::NONE, calls);
    }
    let has_budget = cost::is_on();
    let _timing = cost::time_decision(&site.cost);
    if has_budget {
        // Before the draw, so that the new rate applies to this call.
        budget_control::tick(site, counters.map_or(1, CallCounters::decided));
    }
    let weight = match counters {
        Some(counters) => {
            let longest = if has_budget { LONGEST_GAP_WITH_BUDGET } else { LONGEST_GAP };
            counters.draw(site.sampling(), site.epoch(), longest)
        }
        None => site.shared_counters.draw(site.sampling()),
    };
    if has_budget && weight.is_some() {
        site.cost.count_timed();
    }
    weight.ok_or(Outcome::Unsampled)
}

/// The destination of an admitted call.
pub(crate) enum Entry<G> {
    /// On a stream whose context is known.
    Stream(EnteredStream<G>),
    /// On the host.
    Host,
    /// The call is not timed.
    Untimed,
}

/// The stream of an admitted call.
pub(crate) struct EnteredStream<G> {
    source: StreamSource<G>,
    context: &'static Context,
    /// The call is captured into a graph. It does not count as warm-up, or the shape of the graph
    /// would depend on the number of earlier calls.
    is_captured: bool,
}

/// Evaluates the stream of a call.
#[inline(always)]
pub(crate) fn entry<G>(admission: &mut Admission, source: impl FnOnce() -> Source<G>) -> Entry<G> {
    match source() {
        Source::Host => Entry::Host,
        Source::Stream(source) if is_leased(admission.site, source.context) => {
            admission.outcome = Outcome::Warmup;
            Entry::Untimed
        }
        Source::Stream(source) => entered(admission, source, false),
    }
}

/// Uses one of the thread's leased warm-up calls in this context. Returns `false` if it has none.
#[inline(always)]
fn is_leased(site: &'static CallSite, context: usize) -> bool {
    !site.is_plain()
        && context != 0
        && threads::counters(site).is_some_and(|counters| counters.pass_over(context, site.epoch()))
}

/// Evaluates the stream of a call of a site with `graph`, and samples the call unless it is
/// captured.
#[inline(always)]
pub(crate) fn graph_entry<G>(
    admission: &mut Admission,
    source: impl FnOnce() -> Source<G>,
) -> Entry<G> {
    let site = admission.site;
    // Counted as a decision, because untimed calls pay for this too.
    let timing = cost::time_decision(&site.cost);
    let source = source();
    drop(timing);
    let is_on = is_wanted(site);
    if let Source::Stream(StreamSource { stream, context, .. }) = &source
        && cuda::is_captured(*stream, *context)
        && !cuda::is_recording()
    {
        let Source::Stream(source) = source else { return Entry::Untimed };
        return if is_on || site.gets_nodes(false) {
            entered(admission, source, true)
        } else {
            Entry::Untimed
        };
    }
    if !is_on {
        return Entry::Untimed;
    }
    let drawn = match site.is_sampled() {
        true => draw(site, threads::counters(site)),
        false => Ok(1.0),
    };
    match drawn {
        Ok(weight) => admission.weight = weight,
        Err(outcome) => {
            admission.outcome = outcome;
            return Entry::Untimed;
        }
    }
    match source {
        Source::Host => Entry::Host,
        Source::Stream(source) => entered(admission, source, false),
    }
}

#[inline(always)]
fn entered<G>(admission: &mut Admission, source: StreamSource<G>, is_captured: bool) -> Entry<G> {
    let context = match cuda::recent(source.context) {
        Some(context) => context,
        None => match first::context(admission.site, source.stream, source.context) {
            Ok(context) => context,
            Err(outcome) => {
                admission.outcome = outcome;
                return Entry::Untimed;
            }
        },
    };
    Entry::Stream(EnteredStream { source, context, is_captured })
}

/// Begins the timed call on a stream; `None` if it is a warm-up call.
#[inline(always)]
pub(crate) fn timed_call<G: StreamGuard, D: Details, C>(
    mut admission: Admission,
    entered: EnteredStream<G>,
    details: D,
    make: impl FnOnce(StreamCall, G, D::Work) -> C,
) -> Option<C> {
    let EnteredStream { source, context, is_captured } = entered;
    let StreamSource { stream, context: handle, tracked, guard } = source;
    let site = admission.site;
    let (key, rest) = details.key();
    let key = key.map_or(SeriesKey::NONE, |text| site.keys.find(&text));
    if !site.is_plain() {
        first::prepare(site, context);
        if !is_captured && warms_up(&mut admission, Some((context, handle)), key) {
            return None;
        }
    }
    let work = workload::<D>(site, rest);
    let weight = admission.time();
    let (thread, call_id) = (threads::current(), timeline::begin(site));
    Some(make(
        StreamCall { site, thread, context, stream, tracked, call_id, key, weight },
        guard,
        work,
    ))
}

/// Evaluates the workload of a call, and counts an invalid one.
#[inline(always)]
pub(crate) fn workload<D: Details>(site: &'static CallSite, rest: D::Rest) -> D::Work {
    let work = D::work(rest);
    if work.get().is_invalid() {
        site.count_invalid_workload();
    }
    work
}

/// Takes a warm-up call of the context's device, or of the host without a context. Returns `false`
/// if none is left. If many are left, the thread leases more, which its next calls in the context
/// use up without further checks.
#[inline(never)]
pub(crate) fn warms_up(
    admission: &mut Admission,
    on: Option<(&'static Context, usize)>,
    key: SeriesKey,
) -> bool {
    let site = admission.site;
    let total = site.warmup();
    let device = on.map_or(DeviceId::Host, |(context, _)| context.device_id());
    let counters = threads::counters(site);
    if total == 0 || counters.is_some_and(|counters| counters.is_warm(device, key, total)) {
        return false;
    }
    // A lease applies to calls in one context, before their key is known. The program must not be
    // able to destroy that context: the next one with its address may be on another device.
    let context = on.and_then(|(context, handle)| context.is_retained().then_some(handle));
    let can_lease = !site.is_sampled() && !site.spec.graph && key == SeriesKey::NONE;
    let context = context.filter(|handle| *handle != 0 && can_lease && counters.is_some());
    // The rest of a lease in another context may be used in this one.
    if let Some(Lease { device, calls }) = counters.and_then(CallCounters::take_warmup) {
        site.warmups.give_back(device, SeriesKey::NONE, calls);
    }
    let taken = site.warmups.take(device, key, total, if context.is_some() { LEASE } else { 1 });
    match (counters, context, taken) {
        (Some(counters), _, 0) => counters.set_warm(device, key, total),
        (Some(counters), Some(context), 2..) => {
            counters.skip_warmup(Lease { device, calls: taken - 1 }, context, site.epoch());
        }
        _ => {}
    }
    if taken > 0 {
        admission.outcome = Outcome::Warmup;
    }
    taken > 0
}

/// Most warm-up calls that a thread leases at once.
const LEASE: u32 = 64;

/// Counts a call on the calling thread.
#[inline(always)]
fn count(site: &'static CallSite, outcome: Outcome) {
    match threads::counters(site) {
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
    threads::current();
    match threads::counters(site) {
        Some(counters) => counters.count(outcome),
        None => site.shared_counters.count(outcome),
    }
}
