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
    /// The time until launches are counted again, while nothing may be recorded.
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
        SurchargeControl::uncounted(budget)
    }

    fn uncounted(budget: f64) -> SurchargeControl {
        SurchargeControl {
            budget,
            census: LaunchCensus::default(),
            left_ns: 0.0,
            next_ns: RETRY_NS,
        }
    }

    /// Adds the launches of an interval, and returns the host time in nanoseconds that CUPTI has added to them. The host
    /// sets the pace for a fraction `host_paced` of them; the GPU hides what is added to the rest.
    pub fn take_cost_ns(&mut self, elapsed_ns: f64, host_paced: f64) -> f64 {
        // Without CUPTI, there is nothing to count.
        if !cupti::is_in_use() && !cupti::has_recorded() {
            return 0.0;
        }
        let launches = cupti::take_launches() as f64;
        let surcharge_ns = cupti::surcharge_ns();
        if cupti::has_recorded() {
            // That cannot be undone.
            permission::set(Permission::Granted);
            return launches * surcharge_ns;
        }
        let before = permission::decided();
        let after = self.decide(before, launches, elapsed_ns, surcharge_ns * host_paced);
        if after != before {
            permission::set(after);
            if after == Permission::Granted {
                window::thread::wake();
            }
        }
        match before {
            // The launches are not counted any more.
            Permission::Refused => elapsed_ns * self.census.share(SUBSCRIBED_NS),
            Permission::Granted | Permission::Undecided => launches * CALLED_BACK_NS,
        }
    }

    /// Returns the permission after an interval that began with `before`.
    fn decide(
        &mut self,
        before: Permission,
        launches: f64,
        elapsed_ns: f64,
        surcharge_ns: f64,
    ) -> Permission {
        match before {
            Permission::Granted => Permission::Granted,
            Permission::Undecided => {
                match self.census.add(launches, elapsed_ns, surcharge_ns, self.budget) {
                    Some(true) => Permission::Granted,
                    Some(false) => {
                        self.left_ns = self.next_ns;
                        self.next_ns *= 2.0;
                        Permission::Refused
                    }
                    None => Permission::Undecided,
                }
            }
            Permission::Refused => {
                self.left_ns -= elapsed_ns;
                if self.left_ns > 0.0 {
                    return Permission::Refused;
                }
                self.census.restart();
                Permission::Undecided
            }
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
        if self.next_ns == RETRY_NS {
            return Some(format!(
                "the budget of {budget} may have no room for it, and launches were not counted for long enough \
                 to know. Without `GPU_TIME_BUDGET`, calls are opened from the first one on"
            ));
        }
        let [us, share] =
            [(cupti::surcharge_ns() / 1e3).to_string(), two_digit_percent(self.share())];
        Some(format!(
            "the budget of {budget} has no room for it. From its first record on, CUPTI adds {us} µs to every \
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: f64 = 1e9;
    const MANY: f64 = 100_000.0;
    const FEW: f64 = 5_000.0;

    fn control() -> SurchargeControl {
        SurchargeControl::uncounted(0.01)
    }

    /// Returns the permission after intervals of a second, each with this many launches.
    fn decide(control: &mut SurchargeControl, begin: Permission, launches: &[f64]) -> Permission {
        let next = |now, launches: &f64| control.decide(now, *launches, SECOND, 400.0);
        launches.iter().fold(begin, next)
    }

    #[test]
    fn few_launches_permit_recording_for_good() {
        let mut control = control();
        assert_eq!(decide(&mut control, Permission::Undecided, &[FEW; 2]), Permission::Granted);
        assert_eq!(decide(&mut control, Permission::Granted, &[MANY; 9]), Permission::Granted);
    }

    #[test]
    fn launches_are_counted_again_after_ever_longer_refusals() {
        let mut control = control();
        for seconds in [60, 120, 240] {
            assert_eq!(
                decide(&mut control, Permission::Undecided, &[MANY; 3]),
                Permission::Refused
            );
            let all_but_one = vec![FEW; seconds - 1];
            assert_eq!(
                decide(&mut control, Permission::Refused, &all_but_one),
                Permission::Refused
            );
            assert_eq!(decide(&mut control, Permission::Refused, &[FEW]), Permission::Undecided);
        }
        assert_eq!(decide(&mut control, Permission::Undecided, &[FEW; 2]), Permission::Granted);
    }

    #[test]
    fn launches_behind_a_busy_gpu_cost_nothing() {
        let mut control = control();
        let hidden = |control: &mut SurchargeControl, now| control.decide(now, MANY, SECOND, 0.0);
        let once = hidden(&mut control, Permission::Undecided);
        assert_eq!(hidden(&mut control, once), Permission::Granted);
    }
}
