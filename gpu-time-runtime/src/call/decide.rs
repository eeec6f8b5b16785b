//! Decides whether to time a call, and counts untimed calls by reason. No other module decides this.
//!
//! The steps are, in order: the switch and the filter, sampling, the stream, warm-up. Sites with
//! `graph` look up the stream before sampling. For each site, a thread has a [skip
//! counter](crate::site::counters): how many of its next calls to skip, in a sampling gap or as
//! warm-up calls in one context. A skipped call needs no other check.

use std::any::type_name;
use std::sync::atomic::Ordering::Relaxed;

use crate::base::{fork, inside, switches, switches::SwitchReading};
use crate::call::scope::Decision;
use crate::call::source::{Details, Source, StreamSource, Work};
use crate::call::stream::{Life, StreamGuard, handles};
use crate::call::ticket::{Ticket, count, with_counters};
use crate::call::warmup;
use crate::call::{first, opened};
use crate::control::budget_control;
use crate::cuda::{self, Context};
use crate::cupti;
use crate::record::opened::{OpenedAs, is_inside, is_late};
use crate::record::threads::{self, StreamCall};
use crate::record::{open_brackets::RunningCall, timeline};
use crate::site::counters::{CallCounters, Lease, Outcome};
use crate::site::{callsite::CallSite, cost};
use crate::types::{handles::Stream, key::SeriesKey};
#[cfg(feature = "tracing")]
use crate::{base::random::happens, call::ticket::count_span};

/// The longest sampling gap, in calls. The rate is read again after each gap. Gaps are shorter with a
/// budget, because the budget changes the rate.
const LONGEST_GAP: u64 = 4_096;
const LONGEST_GAP_WITH_BUDGET: u64 = 64;

/// A call that will be timed unless warm-up or the context prevents it, with its stream and
/// context.
pub(crate) struct AdmittedCall<G> {
    pub ticket: Ticket,
    pub source: Source<G>,
    /// The call is captured into a graph. It does not count as warm-up, because the graph's shape
    /// would then depend on the number of earlier calls.
    pub is_captured: bool,
}

/// The question of which stream a call is on. Generated code answers it while the value of the `stream`
/// expression is alive.
#[derive(Clone, Copy)]
pub struct StreamQuery {
    /// The site and the calling thread's counters, which may have leased warm-up calls.
    leases: Option<(&'static CallSite, &'static CallCounters)>,
}

impl StreamQuery {
    /// For calls that are timed regardless of warm-up, or whose warm-up is checked later.
    pub(crate) const WITHOUT_LEASES: StreamQuery = StreamQuery { leases: None };

    /// Answers with a stream. Returns `None` if the call is a warm-up call that its thread has leased,
    /// which needs neither `tracked` nor `guard`.
    ///
    /// If the stream is never destroyed, the expression's value may be a temporary and the last owner of
    /// the context. Therefore the context is retained before the value is dropped.
    #[inline(always)]
    pub fn stream<G>(
        self,
        stream: usize,
        context: usize,
        tracked: impl FnOnce() -> bool,
        guard: impl FnOnce() -> G,
    ) -> Option<Source<G>> {
        if let Some((site, counters)) = self.leases
            && !site.is_plain()
            && context != 0
            && counters.pass_over(context, site.rate.epoch())
        {
            return None;
        }
        let stream = Stream(stream);
        if stream.is_implicit() && context != 0 {
            first::register_context(stream, context);
        }
        let (tracked, guard) = (tracked(), guard());
        Some(Source::Stream(StreamSource { stream, context, tracked, guard }))
    }

    /// Answers with a stream of the user's types, and the handles that their methods returned.
    #[inline(always)]
    pub fn found<S: 'static, C: 'static, G>(
        self,
        stream: &S,
        context: &C,
        named: (usize, usize),
        tracked: impl FnOnce() -> bool,
        guard: impl FnOnce(usize) -> G,
    ) -> Option<Source<G>> {
        match handles(stream, context, named) {
            Some((stream, context)) => self.stream(stream, context, tracked, || guard(stream)),
            None => Some(Source::Unknown(type_name::<S>())),
        }
    }

    /// Answers that the call is on the CPU, without a stream.
    pub fn host<G>(self) -> Option<Source<G>> {
        Some(Source::Host)
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
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
) -> Decision<AdmittedCall<G>> {
    let ticket = match draw(site) {
        Decision::Timed(ticket) => ticket,
        Decision::Plain => return Decision::Plain,
        Decision::Observed => return Decision::Observed,
    };
    let leases = ticket.counters.map(|counters| (site, counters));
    let Some(source) = source(StreamQuery { leases }) else {
        ticket.count_as(Outcome::Warmup);
        timeline::warmup(site);
        return Decision::untimed();
    };
    Decision::Timed(AdmittedCall { ticket, source, is_captured: false })
}

/// Does the same as [`admit`] for a site with `graph`, whose captured calls are timed regardless of sampling.
/// If a graph is captured again, it must keep its shape. Therefore such calls are timed even while timing is
/// switched off, provided that the site's captures have nodes.
#[inline(always)]
pub(crate) fn admit_graph<G: StreamGuard>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
) -> Decision<AdmittedCall<G>> {
    if !is_wanted(site) && !may_need_nodes(site) {
        count(site, Outcome::Skipped);
        return Decision::Plain;
    }
    match admit_captured(site, source) {
        Some(admitted) => Decision::Timed(admitted),
        None => Decision::untimed(),
    }
}

#[inline(never)]
fn admit_captured<G: StreamGuard>(
    site: &'static CallSite,
    source: impl FnOnce(StreamQuery) -> Option<Source<G>>,
) -> Option<AdmittedCall<G>> {
    let mut ticket = Ticket::new(site, 1.0);
    // This time is not attributed to timed calls alone, because every call of the site incurs it.
    let timing = cost::time_decision(&site.cost);
    let source = source(StreamQuery::WITHOUT_LEASES);
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
        Source::Host | Source::Unknown(_) => false,
    };
    if is_captured {
        return (is_on || site.gets_nodes(false)).then_some(AdmittedCall {
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
    Some(AdmittedCall { ticket, source, is_captured })
}

/// Decides based on the switch, the filter and sampling. Counts the call if it is not timed.
#[inline(always)]
pub(crate) fn draw(site: &'static CallSite) -> Decision<Ticket> {
    match weigh(site) {
        Decision::Timed(weight) => Decision::Timed(Ticket::new(site, weight)),
        Decision::Plain => Decision::Plain,
        Decision::Observed => Decision::Observed,
    }
}

/// Returns the weight of a call that is to be timed. Counts the call if it is not.
///
/// Steps that are not inlined return only the weight, so that the state of the call can stay in
/// registers.
#[inline(always)]
fn weigh(site: &'static CallSite) -> Decision<f32> {
    let Some(timing) = wanted(site) else {
        count(site, Outcome::Skipped);
        return Decision::Plain;
    };
    if !site.is_sampled() {
        return Decision::Timed(1.0);
    }
    if cfg!(any(feature = "kernels", feature = "nvtx")) && !timing.is_plain() {
        return weigh_while_observed(site);
    }
    match sample(site) {
        Some(weight) => Decision::Timed(weight),
        None => Decision::Plain,
    }
}

/// Does the same as [`weigh`] for a sampled site, in a phase, while one may begin, or while an NVTX tool listens.
#[cold]
fn weigh_while_observed(site: &'static CallSite) -> Decision<f32> {
    if is_inside() {
        // Sampling chose the call around this one.
        return Decision::Timed(1.0);
    }
    match sample(site) {
        Some(weight) => Decision::Timed(weight),
        None => Decision::Observed,
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
fn wanted(site: &'static CallSite) -> Option<SwitchReading> {
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

/// Decides about a span. Returns the probability of timing it, or counts it and returns `None`.
///
/// If the span was chosen as a root, `chosen` is the probability of that. Any other span is timed whenever its
/// root is.
#[cfg(feature = "tracing")]
pub(crate) fn span(site: &'static CallSite, chosen: Option<f64>) -> Option<f64> {
    if !is_wanted(site) {
        count(site, Outcome::Skipped);
        return None;
    }
    let Some(chosen) = chosen.filter(|_| site.is_sampled()) else { return Some(1.0) };
    let has_budget = cost::is_on();
    if has_budget {
        // The span also represents those that were not chosen.
        budget_control::tick(site, chosen.recip() as u64);
    }
    let share = site.rate.get().rate();
    if !happens(share) {
        count_span(site, None);
        return None;
    }
    if has_budget {
        site.cost.count_timed();
    }
    Some(share)
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

/// The way in which a call that names no stream is timed.
pub(crate) enum Opening {
    /// In an opened call.
    Opened(Ticket, OpenedAs),
    /// Not at all, because it begins after the phase of the opened call around it.
    Late(&'static CallSite),
    /// By the host clock, because no call can be opened.
    ByHost(Ticket),
}

/// Returns the weight with which the sampler chose a call that has not been opened yet, or `None` if the
/// sampler was not asked.
pub(crate) fn drawn(ticket: &Ticket) -> Option<f32> {
    (ticket.site.is_sampled() && !is_inside()).then_some(ticket.weight)
}

/// Counts a call that [is late](is_late), and returns its site.
pub(crate) fn count_late(ticket: Ticket) -> &'static CallSite {
    let site = ticket.site;
    ticket.count_as(Outcome::Unsampled);
    site
}

/// Decides how to time a call that names no stream: in the thread's opened call, by opening it, or by the host
/// clock. Returns `None` if it was not chosen.
pub(crate) fn opening(ticket: Ticket) -> Option<Opening> {
    if is_late() {
        return Some(Opening::Late(count_late(ticket)));
    }
    let site = ticket.site;
    if is_inside() {
        return Some(Opening::Opened(ticket, OpenedAs::OfPhase));
    }
    if !site.is_opened() || !cupti::is_available() {
        return Some(Opening::ByHost(ticket));
    }
    if let Some(opened_as) = opened::opens(site) {
        return Some(Opening::Opened(ticket, opened_as));
    }
    if let Some(drawn) = drawn(&ticket) {
        with_counters(site, |counters| counters.take_back_drawn(drawn));
    }
    ticket.count_as(Outcome::Unsampled);
    None
}

/// Returns `true`, and counts the call, if it is a warm-up call.
#[inline(always)]
pub(crate) fn warms_up(
    ticket: &mut Ticket,
    on: Option<(&'static Context, usize)>,
    key: SeriesKey,
) -> bool {
    let is_warmup = warmup::take(ticket.site, on, key);
    if is_warmup {
        ticket.warm_up();
        timeline::warmup(ticket.site);
    }
    is_warmup
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

#[cfg(test)]
mod tests;
