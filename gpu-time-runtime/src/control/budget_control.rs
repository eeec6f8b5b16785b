//! The budget at work: calls that are decided about see to it now and then that the rates are adjusted.
//!
//! Where calls become rare, the next that is decided about may be a long way off. A call that is passed
//! over asks for no time, so a thread of our own, which sleeps otherwise, sees that nobody has adjusted
//! for a while, and has the next call of every function decided about.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{ptr, thread};

use crate::base::background;
use crate::base::clock;
use crate::base::console;
use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches;
use crate::base::switches::SWITCHES;
use crate::site::callsite::CallSite;
use crate::stats::budget::Budget;
use crate::types::sampling::Sampling;
use gpu_time_report::Budget as Reported;
use gpu_time_report::units::percent;

/// At least so long until the next adjustment.
const PAUSE_NS: u64 = 10_000_000;
/// An adjustment takes no more than one part of so many of the time.
const SHARE: u64 = 2_000;
/// No adjustment takes longer than this, and this more for each site: its thread stood still meanwhile.
const LONGEST_NS: u64 = 10_000;
const LONGEST_OF_SITE_NS: u64 = 1_000;
/// After so long a new site's load is looked at.
const FIRST_NS: u64 = 1_000_000;
/// What came together in less time is no load yet.
const SHORTEST_NS: u64 = 200_000;
/// An adjustment that is overdue for so long is one that no call comes to.
const PATIENCE: Duration = Duration::from_secs(1);

struct Controller {
    budget: Budget,
    sites: Vec<&'static CallSite>,
    adjusted_ns: u64,
    /// What the last adjustment took.
    took_ns: u64,
}

static STEERING: Mutex<Option<Controller>> = Mutex::new(Rank::Budget, None);
/// When the next adjustment is due.
static DUE_NS: AtomicU64 = AtomicU64::new(0);

/// Keeps what timing costs below this share of the time from here on; `None`: it costs what it costs.
/// Where that is new, sites must [`join`] anew; else all that was learned holds.
pub(crate) fn set(share: Option<f64>) {
    let mut steering = locked(&STEERING);
    if steering.as_ref().map(|steering| steering.budget.share()) == share {
        return;
    }
    let now = clock::now_ns();
    *steering = share.map(|share| Controller::new(share, now));
    DUE_NS.store(now + FIRST_NS, Relaxed);
    SWITCHES.budget.store(share.is_some(), Relaxed);
}

/// One more site, whose calls are sampled like this at most. Answers how they are sampled just now, if there is a
/// budget.
pub(crate) fn join(site: &'static CallSite, most: Sampling) -> Option<Sampling> {
    let mut steering = locked(&STEERING);
    let steering = steering.as_mut()?;
    // Two threads may have made its first call at once, and a program may configure something else.
    if let Some(at) = steering.sites.iter().position(|known| ptr::eq(*known, site)) {
        return Sampling::of_share(steering.budget.limit(at, most.rate())?);
    }
    steering.join(site, most);
    DUE_NS.fetch_min(clock::now_ns() + FIRST_NS, Relaxed);
    Some(most)
}

/// It is to be decided about a call of a site, of so many since the last. Adjusts if that is due.
pub(crate) fn look(site: &'static CallSite, calls: u64) {
    site.cost.count(calls);
    let now = clock::now_ns();
    if now >= DUE_NS.load(Relaxed) {
        adjust(now);
    }
}

#[cold]
fn adjust(now: u64) {
    // Another thread is at it.
    let Ok(mut steering) = STEERING.try_lock() else { return };
    let Some(pause_ns) = steering.as_mut().and_then(|it| it.adjust(now)) else { return };
    DUE_NS.store(now + pause_ns, Relaxed);
    drop(steering);
    watch();
}

impl Controller {
    fn new(share: f64, now: u64) -> Self {
        Controller { budget: Budget::new(share), sites: Vec::new(), adjusted_ns: now, took_ns: 0 }
    }

    fn join(&mut self, site: &'static CallSite, most: Sampling) {
        self.sites.push(site);
        self.budget.join(most.rate());
    }

    /// Adjusts the rates by what was counted until now, unless it is too soon. Answers how long they hold.
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
        Some(PAUSE_NS.max(self.took_ns * SHARE))
    }
}

/// Starts the thread, once.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = background::spawn("gpu-time-budget", watch_for_ever) {
            console::say(&format!("no thread to watch the budget: {error}"));
        }
    });
}

fn watch_for_ever() {
    let patience_ns = PATIENCE.as_nanos() as u64;
    loop {
        thread::sleep(PATIENCE);
        if switches::is_closed() {
            return;
        }
        if clock::now_ns() > DUE_NS.load(Relaxed).saturating_add(patience_ns)
            && let Some(Controller { sites, .. }) = &*locked(&STEERING)
        {
            sites.iter().for_each(|site| site.renew());
        }
    }
}

/// What an adjustment took of the thread that made it. One that was interrupted for milliseconds would
/// else put the next off by many seconds, in which rates stay as they are: at first, those of all calls.
fn plausible_ns(took_ns: u64, sites: usize) -> u64 {
    took_ns.min(LONGEST_NS + LONGEST_OF_SITE_NS * sites as u64)
}

/// The budget and what it settled at, if there is one.
pub(crate) fn settled() -> Option<Reported> {
    let steering = locked(&STEERING);
    let Controller { budget, sites, .. } = steering.as_ref()?;
    let spent = budget.spent(sites.iter().map(|site| site.cost.peek()));
    Some(Reported {
        share: budget.share(),
        cost_share: budget.cost_share(),
        host_ns: spent.host_ns as u64,
        device_ns: spent.device_ns as u64,
    })
}

/// Why the budget cannot be kept, if so, and what to do.
pub(crate) fn warning() -> Option<String> {
    let steering = locked(&STEERING);
    let Controller { budget, sites, .. } = steering.as_ref()?;
    let (passing, busiest) = budget.overrun()?;
    let [share, passing] = [budget.share(), passing].map(percent);
    let name = sites.get(busiest)?.name();
    Some(format!(
        "the budget of {share} cannot be cell: to pass calls over took {passing} of the wall time by itself \
         lately; `{name}` is called most, and costs less where `GPU_TIME_FILTER` leaves it out, as `!{name}` does"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake;
    use crate::site::cost::{self, LONGEST_NS as CALL_NS};

    /// Calls that all take as long to time, by a clock of the test's own: it is far ahead, so that adjusting
    /// takes no time.
    #[test]
    fn timing_settles_within_the_budget_and_is_all_counted() {
        const STEP_CALLS: u32 = 40;
        let (site, begin) = (fake::site(), u64::MAX / 2);
        let mut steering = Controller::new(0.01, begin);
        steering.join(site, Sampling::ALL);
        let (mut due, mut timed, mut settled) = (0.0, 0, 0);
        for step in 1..=500 {
            if step == 100 {
                settled = timed;
            }
            due += f64::from(STEP_CALLS) * site.sampling().rate();
            while due >= 1.0 {
                site.cost.count_timed();
                if timed % 8 == 0 {
                    cost::count_call_of(&site.cost, Duration::from_nanos(CALL_NS));
                }
                (due, timed) = (due - 1.0, timed + 1);
            }
            site.cost.count(STEP_CALLS.into());
            assert_eq!(steering.adjust(begin + step * PAUSE_NS), Some(PAUSE_NS));
        }
        let share = ((timed - settled) * CALL_NS) as f64 / (400 * PAUSE_NS) as f64;
        assert!(share > 0.006 && share <= 0.01, "{share}");
        let shown = steering.budget.cost_share();
        assert!(shown > 0.006 && shown <= 0.01, "{shown}");
        let counted = steering.budget.spent(std::iter::empty()).host_ns;
        let cost = (timed * CALL_NS) as f64;
        assert!(counted >= cost && counted < 1.01 * cost, "{counted} {cost}");
    }

    #[test]
    fn an_interruption_puts_no_adjustment_off() {
        let second = 1_000_000_000;
        assert!(plausible_ns(5_000_000, 1) * SHARE < second / 20);
        assert!(plausible_ns(5_000_000, 400) * SHARE < second);
        assert_eq!(plausible_ns(300, 1), 300);
    }
}
