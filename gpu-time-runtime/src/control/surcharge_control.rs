//! Decides whether the budget has room for what CUPTI adds to every launch, and charges it to the budget.

use crate::cupti;
use crate::record::opened::permission::{self, Permission};
use crate::record::window;
use crate::stats::surcharge::LaunchCensus;
use gpu_time_report::units::two_digit_percent;

/// The time after which launches are counted again if nothing may be recorded, because many programs launch most while
/// they start. It doubles each time, because CUPTI may lose callbacks that are switched off and on.
const RETRY_NS: f64 = 60e9;

/// The host time in nanoseconds that a launch takes longer while CUPTI calls back, and while it is only subscribed: 1,750
/// and 330 instructions more than the 8,000 of a launch, on an H200.
const CALLED_BACK_NS: f64 = 200.0;
const SUBSCRIBED_NS: f64 = 40.0;

/// The launches of the program since it has a budget.
pub(super) struct SurchargeControl {
    budget: f64,
    census: LaunchCensus,
    /// `None` until nothing may be recorded for the first time.
    refusal: Option<RecordingRefusal>,
}

/// The last refusal.
struct RecordingRefusal {
    /// The time until launches are counted again.
    left_ns: f64,
    /// The same for the next refusal.
    next_ns: f64,
}

impl SurchargeControl {
    /// Begins to count launches. Until there are enough of them, nothing may be recorded.
    pub fn new(budget: f64) -> SurchargeControl {
        // What has been recorded already cannot be undone.
        let is_granted = LaunchCensus::is_needless(budget) || cupti::has_recorded();
        permission::set(if is_granted { Permission::Granted } else { Permission::Undecided });
        cupti::count_launches(true);
        SurchargeControl { budget, census: LaunchCensus::default(), refusal: None }
    }

    /// Adds the launches of an interval. Returns what CUPTI has added to them, in nanoseconds of wall time. The
    /// host sets the pace for a fraction `host_paced` of them; the GPU hides the rest.
    pub fn take_cost_ns(&mut self, elapsed_ns: f64, host_paced: f64) -> f64 {
        // Without CUPTI, there is nothing to count.
        if !cupti::is_in_use() && !cupti::has_recorded() {
            return 0.0;
        }
        if cupti::has_recorded() {
            // That cannot be undone.
            permission::set(Permission::Granted);
        }
        let launches = cupti::take_launches() as f64;
        let surcharge_ns = cupti::surcharge_ns() * host_paced;
        match permission::decided() {
            Permission::Granted if cupti::has_recorded() => launches * surcharge_ns,
            Permission::Granted => launches * CALLED_BACK_NS * host_paced,
            Permission::Undecided => {
                let verdict = self.census.add(launches, elapsed_ns, surcharge_ns, self.budget);
                self.decide(verdict);
                launches * CALLED_BACK_NS * host_paced
            }
            Permission::Refused => {
                self.wait(elapsed_ns);
                // The launches are not counted any more.
                elapsed_ns * self.census.share(SUBSCRIBED_NS) * host_paced
            }
        }
    }

    fn decide(&mut self, verdict: Option<bool>) {
        match verdict {
            Some(true) => {
                permission::set(Permission::Granted);
                window::thread::wake();
            }
            Some(false) => {
                let left_ns = self.refusal.as_ref().map_or(RETRY_NS, |last| last.next_ns);
                self.refusal = Some(RecordingRefusal { left_ns, next_ns: 2.0 * left_ns });
                permission::set(Permission::Refused);
            }
            None => {}
        }
    }

    /// Begins to count again after a while.
    fn wait(&mut self, elapsed_ns: f64) {
        let Some(refusal) = &mut self.refusal else { return };
        refusal.left_ns -= elapsed_ns;
        if refusal.left_ns <= 0.0 {
            self.census.restart();
            permission::set(Permission::Undecided);
        }
    }

    /// Returns the fraction of wall time that CUPTI adds, or would add, to the launches of all threads.
    fn share(&self) -> f64 {
        self.census.share(cupti::surcharge_ns())
    }

    /// Returns the reason if nothing may be recorded because of the budget, with a remedy.
    pub fn why_unavailable(&self) -> Option<String> {
        let answer = permission::decided();
        if answer == Permission::Granted || !cupti::is_in_use() {
            return None;
        }
        let budget = two_digit_percent(self.budget);
        if self.refusal.is_none() {
            return Some(format!(
                "the budget of {budget} may have no room for it, and launches were not counted for long enough \
                 to know. Without `GPU_TIME_BUDGET`, calls are opened from the first one on"
            ));
        }
        let [us, share] =
            [(cupti::surcharge_ns() / 1e3).to_string(), two_digit_percent(self.share())];
        Some(format!(
            "the budget of {budget} has no room for it. From the first one on, CUPTI adds {us} µs to every \
             launch, which is up to {share} of this program's wall time. To accept that, replace \
             `GPU_TIME_BUDGET` by a share of the calls, such as `GPU_TIME_KERNELS=1%`"
        ))
    }
}

/// Ends the budget: recording is permitted.
pub(super) fn end() {
    permission::set(Permission::Granted);
    cupti::count_launches(false);
}

/// Counts launches, or stops counting them while nothing may be recorded, because CUPTI's callbacks slow them down.
/// Called by one thread, which must hold no lock.
pub(super) fn follow_permission() {
    let is_refused = permission::decided() == Permission::Refused;
    if cupti::is_in_use() {
        cupti::call_back(!is_refused);
    }
}
