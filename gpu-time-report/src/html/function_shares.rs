//! The functions' shares of a device's time.

use crate::busy_time::BusyTime;
use crate::coverage::FAR;
use crate::in_use::in_use_ns;
use crate::marks::{ESTIMATE, UNCERTAIN, UPPER_BOUND, bound};
use crate::own_times::{EXACT, OwnTime, own_times, sum};
use crate::{Coverage, Device, Snapshot};

/// The share by which phases without an error contradict what is known.
const FAR_WITHOUT_ERROR: f64 = 0.1;

/// The share of one function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionShare {
    pub share: f64,
    /// `≤` if the share is a bound, `?` if it is uncertain, and `~` if it is an estimate without a
    /// known error.
    pub mark: &'static str,
}

/// The rule by which a device's time is divided among functions.
pub struct FunctionShares {
    rule: Rule,
    busy: BusyTime,
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Each function has its own time, of which work that ran at once is a part that counts once.
    Own { scale: f64, mark: &'static str },
    /// Upper bounds share what phases found beside the times that are known. Each of both has its scale.
    Rest { known: f64, bounds: f64, mark: &'static str },
    /// It is unknown how to divide the time.
    None,
}

impl FunctionShares {
    /// Returns the rule for a device with these phases, if they tell about it.
    pub fn of(snapshot: &Snapshot, device: &Device, windows: Option<&Coverage>) -> FunctionShares {
        let times = own_times(snapshot, Some(&device.id));
        let busy = BusyTime::of(snapshot, device, &times);
        let run_ns = in_use_ns(&snapshot.process, device);
        let measured_ns = sum(&times);
        let bounds = times.iter().filter(|time| time.is_bound()).count();
        let is_partly_known = times.iter().any(|time| time.is_partly_known);
        let has_bounds = bounds > 0;
        let own = |mark| Rule::Own { scale: busy.ns / measured_ns / run_ns, mark };
        let rule = match windows {
            Some(_) if !busy.is_bound => own(""),
            Some(coverage)
                if coverage.attributed > 0.0 && (busy.is_partial || !is_partly_known) =>
            {
                // What phases found is divided by the times, which are uncertain with a bound among them.
                let mark = if has_bounds && times.len() > 1 { UNCERTAIN } else { ESTIMATE };
                if mark == UNCERTAIN && !is_partly_known {
                    Rule::None
                } else {
                    Rule::Own { scale: coverage.attributed / measured_ns, mark }
                }
            }
            Some(coverage) => {
                let overlap_ns = device.overlap.map_or(0.0, |overlap| overlap.ns);
                let sum_ns: f64 = times.iter().map(OwnTime::known_ns).sum();
                let known_ns = (sum_ns - overlap_ns).clamp(0.0, run_ns);
                let (bound_ns, rest_ns) =
                    (measured_ns - sum_ns, coverage.attributed * run_ns - known_ns);
                let most_ns = most_beside_ns(coverage, known_ns, run_ns);
                let (ns, mark) = match rest_ns {
                    rest_ns if rest_ns >= bound_ns => (bound_ns, UPPER_BOUND),
                    rest_ns if rest_ns <= 0.0 => (bound_ns.min(most_ns), UPPER_BOUND),
                    rest_ns if bounds > 1 => (rest_ns, UNCERTAIN),
                    rest_ns => (rest_ns, ESTIMATE),
                };
                let scale =
                    |ns: f64, of_ns: f64| if of_ns > 0.0 { ns / of_ns / run_ns } else { 0.0 };
                Rule::Rest { known: scale(known_ns, sum_ns), bounds: scale(ns, bound_ns), mark }
            }
            // The sum of the own times exceeds the whole run.
            None if has_bounds && busy.ns >= run_ns => {
                if is_partly_known {
                    own(UNCERTAIN)
                } else {
                    Rule::None
                }
            }
            None => own(bound(busy.is_partial)),
        };
        FunctionShares { rule, busy }
    }

    /// Returns `true` if the sum of the shares is an upper bound.
    pub fn is_bound(&self) -> bool {
        self.busy.is_bound
    }

    /// Returns the share of each of these own times on the device. `None` if it is unknown how to
    /// divide the time.
    pub fn of_each(&self, times: &[OwnTime]) -> Option<Vec<FunctionShare>> {
        let of = |time: &OwnTime| match self.rule {
            Rule::Own { scale, mark: "" } => {
                let mark = match time.is_bound() {
                    false if scale * time.error_ns > EXACT => ESTIMATE,
                    is_bound => bound(is_bound),
                };
                Some(FunctionShare { share: scale * time.ns, mark })
            }
            Rule::Own { scale, mark } => Some(FunctionShare { share: scale * time.ns, mark }),
            Rule::Rest { known, bounds, mark } => {
                let share = known * time.known_ns() + bounds * time.bound_ns;
                Some(FunctionShare { share, mark: if time.is_bound() { mark } else { "" } })
            }
            Rule::None => None,
        };
        times.iter().map(of).collect()
    }
}

/// Returns the time that phases leave for upper bounds beside times that are known, or the rest of the run if phases
/// contradict these.
fn most_beside_ns(coverage: &Coverage, known_ns: f64, run_ns: f64) -> f64 {
    let busy_ns = coverage.busy * run_ns;
    let error = coverage.busy_error.map_or(FAR_WITHOUT_ERROR, |error| FAR * error);
    if known_ns > busy_ns + error * run_ns {
        run_ns - known_ns
    } else {
        (busy_ns - known_ns).max(0.0)
    }
}
