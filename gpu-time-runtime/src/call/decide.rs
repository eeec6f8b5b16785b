//! Decides whether to time a call, and counts untimed calls by reason. No other module decides this.
//!
//! The steps are, in order: the switch and the filter, sampling, the stream, warm-up. Sites with
//! `graph` look up the stream before sampling. For each site, a thread has a [skip
//! counter](crate::site::counters): how many of its next calls to skip, in a sampling gap or as
//! warm-up calls in one context. A skipped call needs no other check.

use std::any::type_name;

use crate::base::{fork, inside, switches, switches::SwitchReading};
use crate::call::first;
use crate::call::source::{Source, StreamSource};
use crate::call::stream::{Life, StreamGuard, handles};
use crate::call::ticket::{Ticket, count, with_counters};
use crate::control::budget_control;
use crate::cuda;
use crate::record::{opened::is_inside, stack, threads};
use crate::site::counters::{CallCounters, Lease, Outcome};
use crate::site::{callsite::CallSite, cost};
use crate::types::{handles::Stream, key::SeriesKey};
#[cfg(feature = "tracing")]
use crate::{base::random::happens, call::ticket::count_span};

/// The longest sampling gap, in calls. The rate is read again after each gap. Gaps are shorter with a
/// budget, because the budget changes the rate.
const LONGEST_GAP: u64 = 4_096;
const LONGEST_GAP_WITH_BUDGET: u64 = 64;

/// The question of which stream a call is on. Generated code answers it while the value of the `stream`
/// expression is alive.
#[derive(Clone, Copy)]
pub struct StreamQuery {
    /// The site and the calling thread's counters, which may have leased warm-up calls.
    leases: Option<(&'static CallSite, &'static CallCounters)>,
}

impl StreamQuery {
    /// Asks about a call that is to be timed.
    #[inline(always)]
    pub(crate) fn about(ticket: &Ticket) -> StreamQuery {
        StreamQuery { leases: ticket.counters.map(|counters| (ticket.site, counters)) }
    }

    /// For calls whose warm-up is checked later.
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
        Some(Source::None)
    }
}

/// A call that is not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untimed {
    /// Nothing observes it.
    Plain,
    /// CUPTI may record it, or a tool may listen.
    Observed,
}

/// Makes the part of the decision that does not need the stream. Returns the number of calls that a timed one
/// represents. Counts the call if it is not timed.
///
/// Inlined into the caller, together with everything else that an untimed call does, so that such a
/// call makes no function call. Without optimisation, inlining would add this frame to the caller's,
/// which stays on the stack while the driver runs.
#[cfg_attr(not(debug_assertions), inline(always))]
#[cfg_attr(debug_assertions, inline(never))]
pub(crate) fn decide(site: &'static CallSite) -> Result<f32, Untimed> {
    let Some(timing) = wanted(site) else {
        if site.spec.graph && may_need_nodes(site) {
            return Ok(1.0);
        }
        count(site, Outcome::Skipped);
        return Err(Untimed::Plain);
    };
    if !site.is_sampled() || (!site.is_plain() && site.spec.graph) {
        return Ok(1.0);
    }
    if timing.is_plain() {
        return sample(site, Untimed::Plain);
    }
    if is_inside() {
        // Sampling chose the call around this one.
        return Ok(1.0);
    }
    let is_plain = timing.is_only_comparing() && site.trials.are_short();
    sample(site, if is_plain { Untimed::Plain } else { Untimed::Observed })
}

/// Decides about a call of a site with `graph`, whose stream is now known. Returns `false` if the call is not timed.
///
/// Captured calls are timed regardless of sampling. If a graph is captured again, it must keep its shape. Therefore
/// such calls are timed even while timing is switched off, provided that the site's captures have nodes.
#[inline(never)]
pub(crate) fn is_timed_on<G: StreamGuard>(source: &Source<G>, ticket: &mut Ticket) -> bool {
    let site = ticket.site;
    let is_on = is_wanted(site);
    // This time is not attributed to timed calls alone, because every call of the site incurs it.
    let timing = cost::time_decision(&site.cost);
    ticket.is_captured = match source {
        Source::Stream(StreamSource { stream, context, guard, .. }) => {
            let strong = guard.upgrade();
            Life::of(&strong).obstacle().is_none()
                && cuda::is_captured(*stream, *context)
                && !cuda::is_recording()
        }
        Source::None | Source::Unknown(_) => false,
    };
    drop(timing);
    if ticket.is_captured {
        return is_on || site.gets_nodes(false);
    }
    if is_on && site.is_sampled() {
        match draw(site, ticket.counters) {
            Ok(weight) => ticket.weight = weight,
            Err(outcome) => {
                ticket.count_as(outcome);
                return false;
            }
        }
    }
    is_on
}

/// Decides based on sampling. Counts the call if it is not timed. It is `passed` in a sampling gap.
#[inline(always)]
fn sample(site: &'static CallSite, passed: Untimed) -> Result<f32, Untimed> {
    let counters = threads::counters(site);
    if let Some(counters) = counters
        && counters.pass_over(0, site.rate.epoch())
    {
        counters.count(Outcome::Unsampled);
        return Err(passed);
    }
    draw_and_count(site, counters).ok_or(Untimed::Observed)
}

#[cold]
fn draw_and_count(site: &'static CallSite, counters: Option<&'static CallCounters>) -> Option<f32> {
    let Some(_inside) = inside::try_enter() else {
        count(site, Outcome::Skipped);
        return None;
    };
    draw(site, counters).map_err(|outcome| count(site, outcome)).ok()
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
fn draw(site: &'static CallSite, known: Option<&'static CallCounters>) -> Result<f32, Outcome> {
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
    let weight = weight.ok_or(Outcome::Unsampled)?;
    if has_budget { admit(site, weight) } else { Ok(weight) }
}

/// Leaves some of the chosen calls alone, so that it is known what timing adds to the others. Returns the weight of a
/// timed call.
#[cold]
fn admit(site: &'static CallSite, weight: f32) -> Result<f32, Outcome> {
    let Some(factor) = stack::admit(site) else {
        with_counters(site, |counters| counters.take_back_drawn(weight));
        return Err(Outcome::Unsampled);
    };
    site.cost.count_timed();
    if factor != 1.0 {
        with_counters(site, |counters| {
            counters.weigh_opened(Some(weight), f64::from(weight * factor));
        });
    }
    Ok(weight * factor)
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
    if has_budget && let Some(_inside) = inside::try_enter() {
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

#[cfg(test)]
mod tests;
