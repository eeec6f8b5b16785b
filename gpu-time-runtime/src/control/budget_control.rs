//! The budget controller: adjusts the sampling rates while the program runs.
//!
//! Calls that are decided about adjust the rates when an adjustment is due. If calls become rare,
//! the next decision may be far away, and a call that is passed over reads no clock. A background
//! thread, which sleeps otherwise, therefore notices that no adjustment was made for a second, and
//! makes every thread decide about its next call.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{ptr, thread};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{background, clock, console, switches, switches::SWITCHES};
use crate::site::callsite::CallSite;
use crate::stats::budget::Budget;
use crate::types::sampling::Sampling;
use gpu_time_report::Budget as BudgetReport;
use gpu_time_report::units::percent;

/// The shortest pause between two adjustments.
const PAUSE_NS: u64 = 10_000_000;
/// An adjustment takes at most one part in this many of the time until the next.
const PARTS: u64 = 2_000;
/// Upper bound on the duration of an adjustment, without and for each site. A longer one was
/// interrupted.
const LONGEST_NS: u64 = 10_000;
const LONGEST_OF_SITE_NS: u64 = 1_000;
/// The delay after which the load of a new site is looked at.
const FIRST_NS: u64 = 1_000_000;
/// The shortest interval in which calls are a load.
const SHORTEST_NS: u64 = 200_000;
/// The time by which an adjustment is overdue if no call makes it.
const PATIENCE: Duration = Duration::from_secs(1);

struct Controller {
    budget: Budget,
    /// In the order in which the budget knows them.
    sites: Vec<&'static CallSite>,
    adjusted_ns: u64,
    /// The duration of the last adjustment.
    took_ns: u64,
}

static CONTROLLER: Mutex<Option<Controller>> = Mutex::new(Rank::Budget, None);
/// The time at which the next adjustment is due.
static DUE_NS: AtomicU64 = AtomicU64::new(0);

/// Sets the share of wall time that timing may take; `None` removes the bound. If it changes, sites
/// must be [added](add) again; otherwise all that was learned stays.
pub(crate) fn set(share: Option<f64>) {
    let mut controller = locked(&CONTROLLER);
    if controller.as_ref().map(|controller| controller.budget.share()) == share {
        return;
    }
    let now = clock::now_ns();
    *controller = share.map(|share| Controller::new(share, now));
    DUE_NS.store(now + FIRST_NS, Relaxed);
    SWITCHES.budget.store(share.is_some(), Relaxed);
    drop(controller);
    if share.is_some() {
        start_watching();
    }
}

/// Adds a site, whose calls are sampled at most as given, or changes that bound. Returns the
/// sampling until the next adjustment, or `None` without a budget.
pub(crate) fn add(site: &'static CallSite, max: Sampling) -> Option<Sampling> {
    let mut controller = locked(&CONTROLLER);
    let controller = controller.as_mut()?;
    // Two threads may make a first call at once, and the program may change the configuration.
    if let Some(index) = controller.sites.iter().position(|known| ptr::eq(*known, site)) {
        return Sampling::of_share(controller.budget.limit(index, max.rate())?);
    }
    controller.add(site, max);
    DUE_NS.fetch_min(clock::now_ns() + FIRST_NS, Relaxed);
    Some(max)
}

/// Counts the calls of a site since its last decision, and adjusts the rates if that is due.
pub(crate) fn tick(site: &'static CallSite, calls: u64) {
    site.cost.count(calls);
    let now = clock::now_ns();
    if now >= DUE_NS.load(Relaxed) {
        adjust(now);
    }
}

#[cold]
fn adjust(now: u64) {
    // If it is locked, another thread adjusts the rates.
    let Ok(mut controller) = CONTROLLER.try_lock() else { return };
    if let Some(pause_ns) = controller.as_mut().and_then(|controller| controller.adjust(now)) {
        DUE_NS.store(now + pause_ns, Relaxed);
    }
}

impl Controller {
    fn new(share: f64, now: u64) -> Self {
        Controller { budget: Budget::new(share), sites: Vec::new(), adjusted_ns: now, took_ns: 0 }
    }

    fn add(&mut self, site: &'static CallSite, max: Sampling) {
        self.sites.push(site);
        self.budget.add(max.rate());
    }

    /// Adjusts the rates to the counters, unless it is too soon. Returns the time until the next
    /// adjustment.
    fn adjust(&mut self, now: u64) -> Option<u64> {
        let elapsed_ns = now.saturating_sub(self.adjusted_ns);
        if elapsed_ns < SHORTEST_NS {
            return None;
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

/// Starts the background thread, once in a process.
fn start_watching() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = background::spawn("gpu-time-budget", watch) {
            console::say(&format!("failed to start the budget's background thread: {error}"));
        }
    });
}

fn watch() {
    let patience_ns = PATIENCE.as_nanos() as u64;
    loop {
        thread::sleep(PATIENCE);
        if switches::is_closed() {
            return;
        }
        if clock::now_ns() > DUE_NS.load(Relaxed).saturating_add(patience_ns)
            && let Some(Controller { sites, .. }) = &*locked(&CONTROLLER)
        {
            sites.iter().for_each(|site| site.rate.renew());
        }
    }
}

/// Bounds the duration of an adjustment. One that was interrupted for milliseconds would otherwise
/// put the next one off by many seconds, and at first all calls are timed until then.
fn plausible_ns(took_ns: u64, sites: usize) -> u64 {
    took_ns.min(LONGEST_NS + LONGEST_OF_SITE_NS * sites as u64)
}

/// Returns the budget and its cost for the report, if there is a budget.
pub(crate) fn settled() -> Option<BudgetReport> {
    let controller = locked(&CONTROLLER);
    let Controller { budget, sites, .. } = controller.as_ref()?;
    let cost = budget.cost(sites.iter().map(|site| site.cost.peek()));
    Some(BudgetReport {
        share: budget.share(),
        cost_share: budget.cost_share(),
        host_ns: cost.host_ns as u64,
        device_ns: cost.device_ns as u64,
    })
}

/// Returns a warning if the budget cannot be kept.
pub(crate) fn warning() -> Option<String> {
    let controller = locked(&CONTROLLER);
    let Controller { budget, sites, .. } = controller.as_ref()?;
    let (passing, busiest) = budget.overrun()?;
    let [share, passing] = [budget.share(), passing].map(percent);
    let name = sites.get(busiest)?.name();
    Some(format!(
        "the budget of {share} cannot be kept: calls that are not timed took {passing} of the wall \
         time recently, most of them calls of `{name}`: set `GPU_TIME_FILTER` to `!{name}` to exclude it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake;
    use crate::site::cost::{self, LONGEST_NS as CALL_NS};

    /// Every timed call costs the same. The test's clock is far ahead, so that adjusting takes no
    /// time.
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
