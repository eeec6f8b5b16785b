//! The ticket of a call, which counts the call once.

use std::sync::atomic::Ordering::Relaxed;

use crate::base::{fork, inside};
use crate::record::{threads, trial};
use crate::site::callsite::CallSite;
use crate::site::counters::{CallCounters, Outcome};

/// Counts one call.
///
/// Invariant: each call is counted exactly once, at the latest when this is dropped. Then it counts as skipped, so a
/// panic in one of the user's expressions leaves the call counted as skipped.
pub(crate) struct Ticket {
    pub site: &'static CallSite,
    /// The thread's counters of the site, if they are allocated.
    pub counters: Option<&'static CallCounters>,
    /// The number of calls that this call represents.
    pub weight: f32,
    /// The call is captured into a graph. It does not count as warm-up, because the graph's shape
    /// would then depend on the number of earlier calls.
    pub is_captured: bool,
    is_counted: bool,
}

impl Ticket {
    #[inline(always)]
    pub fn new(site: &'static CallSite, weight: f32) -> Ticket {
        let counters = threads::counters(site);
        Ticket { site, counters, weight, is_captured: false, is_counted: false }
    }

    /// Counts the call with the given outcome.
    #[inline(always)]
    pub fn count_as(&mut self, outcome: Outcome) {
        self.is_counted = true;
        if outcome == Outcome::Warmup {
            // It was drawn as one that is timed.
            trial::forget();
        }
        count_in(self.counters, self.site, outcome);
    }
}

impl Drop for Ticket {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.is_counted {
            count_in(self.counters, self.site, Outcome::Skipped);
        }
    }
}

/// Counts a span. `weight` is the number of spans that it represents, or `None` if it is not timed.
#[cfg(feature = "tracing")]
pub(crate) fn count_span(site: &'static CallSite, weight: Option<f64>) {
    with_counters(site, |counters| counters.count_span(weight));
}

/// Passes on the counters of the calling thread for the site or, if it has none, the shared ones.
pub(super) fn with_counters(site: &'static CallSite, change: impl FnOnce(&CallCounters)) {
    match threads::allocated_counters(site) {
        Some(counters) => change(counters),
        None => change(&site.shared_counters()),
    }
}

/// Counts a call on the calling thread.
#[inline(always)]
pub(super) fn count(site: &'static CallSite, outcome: Outcome) {
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
        // This call may have interrupted the runtime, even while the runtime assigned the thread's counters.
        site.skipped_inside.fetch_add(1, Relaxed);
        return;
    }
    with_counters(site, |counters| counters.count(outcome));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::site;

    #[test]
    fn call_in_warm_up_is_compared_with_no_other() {
        for (outcome, is_kept) in [(Outcome::Warmup, false), (Outcome::Timed, true)] {
            trial::draw(site(), 0);
            Ticket::new(site(), 1.0).count_as(outcome);
            assert_eq!(trial::drawn().is_some(), is_kept);
        }
    }
}
