//! Decides whether the budget has room for what CUPTI adds to every launch, and charges it to the budget.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::cupti;
use crate::record::opened::permission::{self, Permission};
use crate::record::window;
use crate::stats::surcharge::LaunchCensus;
use gpu_time_report::units::two_digit_percent;

/// The launches of the program since it has a budget.
pub(super) struct SurchargeControl {
    budget: f64,
    census: LaunchCensus,
}

impl SurchargeControl {
    /// Begins to count launches. Until there are enough of them, nothing may be recorded.
    pub fn new(budget: f64) -> SurchargeControl {
        // What has been recorded already cannot be undone.
        let is_granted = LaunchCensus::is_needless(budget) || cupti::has_recorded();
        permission::set(if is_granted { Permission::Granted } else { Permission::Undecided });
        cupti::count_launches(true);
        SurchargeControl { budget, census: LaunchCensus::default() }
    }

    /// Adds the launches of an interval. Returns what CUPTI has added to them, in nanoseconds of wall time. The
    /// host sets the pace for a fraction `host_paced` of them; the GPU hides the rest.
    pub fn take_cost_ns(&mut self, elapsed_ns: f64, host_paced: f64) -> f64 {
        // Without CUPTI, there is nothing to count.
        if !cupti::is_in_use() {
            return 0.0;
        }
        let launches = cupti::take_launches() as f64;
        let surcharge_ns = cupti::surcharge_ns() as f64 * host_paced;
        let verdict = self.census.add(launches, elapsed_ns, surcharge_ns, self.budget);
        if permission::decided() == Permission::Undecided {
            match verdict {
                Some(true) => {
                    permission::set(Permission::Granted);
                    window::thread::wake();
                }
                Some(false) => permission::set(Permission::Refused),
                None => {}
            }
        }
        if cupti::has_recorded() { launches * surcharge_ns } else { 0.0 }
    }

    /// Returns the fraction of wall time that CUPTI adds, or would add, to the launches of all threads.
    fn share(&self) -> f64 {
        self.census.share(cupti::surcharge_ns() as f64)
    }

    /// Returns the reason if nothing may be recorded because of the budget, with a remedy.
    pub fn why_unavailable(&self) -> Option<String> {
        let answer = permission::decided();
        if answer == Permission::Granted || !cupti::is_in_use() {
            return None;
        }
        let budget = two_digit_percent(self.budget);
        if answer == Permission::Undecided {
            return Some(format!(
                "the budget of {budget} may have no room for it, and launches were not counted for long enough \
                 to know. Without `GPU_TIME_BUDGET`, calls are opened from the first one on"
            ));
        }
        let [us, share] =
            [(cupti::surcharge_ns() as f64 / 1e3).to_string(), two_digit_percent(self.share())];
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

/// Stops counting launches if nothing may be recorded. The caller must not hold a lock.
pub(super) fn stop_if_refused() {
    static IS_STOPPED: AtomicBool = AtomicBool::new(false);
    if permission::decided() == Permission::Refused && !IS_STOPPED.swap(true, Relaxed) {
        cupti::count_launches(false);
        cupti::silence();
    }
}
