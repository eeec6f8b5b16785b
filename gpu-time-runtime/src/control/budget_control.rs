//! The budget controller: adjusts the sampling rates while the program runs.
//!
//! When an adjustment is due, the next call that reaches a sampling decision performs it.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::clock;
use crate::base::lock::{Mutex, Rank, locked, try_locked};
use crate::base::switches::{self, SWITCHES};
use crate::site::callsite::CallSite;
use crate::stats::budget::BudgetAccount;
use crate::types::sampling::Sampling;
use gpu_time_report::{self as report, units::two_digit_percent};

/// The shortest pause between two adjustments.
const PAUSE_NS: u64 = 10_000_000;
/// An adjustment may take at most this fraction (one part in `PARTS`) of the time until the next
/// one.
const PARTS: u64 = 2_000;
/// Upper bound on the duration of an adjustment: a base, and an addition for each site. A longer
/// adjustment was interrupted.
const LONGEST_NS: u64 = 10_000;
const LONGEST_OF_SITE_NS: u64 = 1_000;
/// The delay before a new site's load is first examined.
const FIRST_NS: u64 = 1_000_000;
/// The shortest interval over which calls count as a load.
const SHORTEST_NS: u64 = 200_000;

struct Controller {
    budget: BudgetAccount,
    /// In the same order as in the budget.
    sites: Vec<&'static CallSite>,
    adjusted_ns: u64,
    /// The duration of the last adjustment.
    took_ns: u64,
}

static CONTROLLER: Mutex<Option<Controller>> = Mutex::new(Rank::Budget, None);
/// The time at which the next adjustment becomes due.
static DUE_NS: AtomicU64 = AtomicU64::new(0);

/// Sets the fraction of wall time available for timing; `None` removes the limit. After a change,
/// sites must be [added](add) again. If nothing changes, everything learned so far is kept.
pub(crate) fn set(share: Option<f64>) {
    let mut controller = locked(&CONTROLLER);
    if controller.as_ref().map(|controller| controller.budget.share()) == share {
        return;
    }
    let now = clock::now_ns();
    *controller = share.map(|share| Controller::new(share, now));
    DUE_NS.store(now + FIRST_NS, Relaxed);
    SWITCHES.budget.store(share.is_some(), Relaxed);
    switches::set_comparing(share.is_some());
}

/// Adds a site with an upper bound on its sampling, or changes that bound. Returns the sampling to
/// use until the next adjustment, or `None` without a budget.
pub(crate) fn add(site: &'static CallSite, max: Sampling) -> Option<Sampling> {
    let mut controller = locked(&CONTROLLER);
    let controller = controller.as_mut()?;
    // Two threads may make the first call at the same time, and the program may change the
    // configuration.
    if let Some(index) = controller.sites.iter().position(|known| ptr::eq(*known, site)) {
        return Sampling::of_share(controller.budget.limit(index, max.rate())?);
    }
    controller.add(site, max);
    DUE_NS.fetch_min(clock::now_ns() + FIRST_NS, Relaxed);
    Some(max)
}

/// Counts a site's calls since its last decision, and adjusts the rates if this is due.
pub(crate) fn tick(site: &'static CallSite, calls: u64) {
    site.cost.count(calls);
    let now = clock::now_ns();
    if now >= DUE_NS.load(Relaxed) {
        adjust(now);
    }
}

#[cold]
fn adjust(now: u64) {
    // If it is locked, another thread is adjusting the rates.
    let Some(mut controller) = try_locked(&CONTROLLER) else { return };
    if let Some(pause_ns) = controller.as_mut().and_then(|controller| controller.adjust(now)) {
        DUE_NS.store(now + pause_ns, Relaxed);
    }
}

impl Controller {
    fn new(share: f64, now: u64) -> Self {
        Controller {
            budget: BudgetAccount::new(share),
            sites: Vec::new(),
            adjusted_ns: now,
            took_ns: 0,
        }
    }

    fn add(&mut self, site: &'static CallSite, max: Sampling) {
        site.trials.begin(self.sites.len());
        self.sites.push(site);
        self.budget.add(max.rate());
    }

    /// Adjusts the rates based on the counters, unless it is too soon. Returns the time until the
    /// next adjustment.
    fn adjust(&mut self, now: u64) -> Option<u64> {
        let elapsed_ns = now.saturating_sub(self.adjusted_ns);
        if elapsed_ns < SHORTEST_NS {
            return None;
        }
        for (index, site) in self.sites.iter().enumerate() {
            self.budget.set_whole_calls(index, site.trials.known());
        }
        let usages = self.sites.iter().map(|site| site.cost.take());
        let rates = self.budget.adjust(elapsed_ns as f64, usages, self.took_ns as f64);
        for (site, rate) in self.sites.iter().zip(rates) {
            site.set_rate(rate);
        }
        self.adjusted_ns = now;
        let took_ns = clock::now_ns().saturating_sub(now);
        self.took_ns = plausible_ns(took_ns, self.sites.len());
        Some(PAUSE_NS.max(self.took_ns * PARTS))
    }
}

/// Bounds the duration of an adjustment. Otherwise, one that was interrupted for milliseconds would
/// delay the next one by many seconds. During the first such delay, all calls would be timed.
fn plausible_ns(took_ns: u64, sites: usize) -> u64 {
    took_ns.min(LONGEST_NS + LONGEST_OF_SITE_NS * sites as u64)
}

/// Returns the budget and its cost for the report, if there is a budget.
pub(crate) fn settled() -> Option<report::Budget> {
    let controller = locked(&CONTROLLER);
    let Controller { budget, sites, .. } = controller.as_ref()?;
    let cost = budget.cost(sites.iter().map(|site| site.cost.peek()));
    Some(report::value!(Budget {
        share: budget.share(),
        cost_share: budget.cost_share(),
        host_ns: cost.host_ns as u64,
        device_ns: cost.device_ns as u64,
        added_share: budget.added_share().map(|added| added.ns),
        added_error_share: budget.added_share().map(|added| added.error_ns),
    }))
}

/// Returns a warning if the budget cannot be met.
pub(crate) fn warning() -> Option<String> {
    let controller = locked(&CONTROLLER);
    let Controller { budget, sites, .. } = controller.as_ref()?;
    let (passing, busiest) = budget.overrun()?;
    let [share, passing] = [budget.share(), passing].map(two_digit_percent);
    let name = sites.get(busiest)?.name();
    Some(format!(
        "the budget of {share} cannot be kept: calls that are not timed took {passing} of the wall \
         time recently, most of it by `{name}`: set `GPU_TIME_FILTER` to `!{name}` to exclude it"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::gpu::fake;
    use crate::site::cost::{self, LONGEST_NS as CALL_NS};

    /// Every timed call costs the same. The test's clock runs far ahead of the real one, so adjusting seems
    /// to take no time.
    #[test]
    fn cost_settles_within_the_budget_and_is_counted() {
        const STEP_CALLS: u32 = 40;
        let (site, begin) = (fake::site(), u64::MAX / 2);
        let mut controller = Controller::new(0.01, begin);
        controller.add(site, Sampling::ALL);
        let (mut due, mut timed, mut settled) = (0.0, 0, 0);
        for step in 1..=500 {
            if step == 100 {
                settled = timed;
            }
            due += f64::from(STEP_CALLS) * site.rate.get().rate();
            while due >= 1.0 {
                site.cost.count_timed();
                if timed % 8 == 0 {
                    cost::count_call_of(&site.cost, Duration::from_nanos(CALL_NS));
                }
                (due, timed) = (due - 1.0, timed + 1);
            }
            site.cost.count(STEP_CALLS.into());
            assert_eq!(controller.adjust(begin + step * PAUSE_NS), Some(PAUSE_NS));
        }
        let share = ((timed - settled) * CALL_NS) as f64 / (400 * PAUSE_NS) as f64;
        assert!(share > 0.006 && share <= 0.01, "{share}");
        let shown = controller.budget.cost_share();
        assert!(shown > 0.006 && shown <= 0.01, "{shown}");
        let counted = controller.budget.cost(std::iter::empty()).host_ns;
        let cost = (timed * CALL_NS) as f64;
        assert!(counted >= cost && counted < 1.01 * cost, "{counted} {cost}");
    }

    #[test]
    fn interrupted_adjustment_does_not_delay_the_next() {
        let second = 1_000_000_000;
        assert!(plausible_ns(5_000_000, 1) * PARTS < second / 20);
        assert!(plausible_ns(5_000_000, 400) * PARTS < second);
        assert_eq!(plausible_ns(300, 1), 300);
    }
}
