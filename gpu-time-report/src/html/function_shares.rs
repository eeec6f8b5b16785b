//! The functions' shares of a device's time.

use crate::Coverage;
use crate::coverage::FAR;
use crate::figure::{Bound, Figure};
use crate::gpu_time::GpuTime;
use crate::own_times::{EXACT, OwnTime, sum};

/// The share by which phases without an error contradict what is known.
const FAR_WITHOUT_ERROR: f64 = 0.1;

/// Returns the share of each function with own time on a GPU. `None` if it is unknown how to divide the time.
///
/// The parts of the own times that are known, and those that are upper bounds, have a scale each.
pub fn function_shares(gpu: &GpuTime) -> Option<Vec<Figure>> {
    let GpuTime { times, in_use_ns: run_ns, busy, is_partial, .. } = gpu;
    let is_all_bound = gpu.is_all_bound();
    let measured_ns = sum(times);
    let bounds = times.iter().filter(|time| time.is_bound()).count();
    let scale = |ns: f64, of_ns: f64| if of_ns > 0.0 { ns / of_ns / run_ns } else { 0.0 };
    // Work that ran at once is a part of several own times, and counts once. A scale is as precise as the shares.
    let alike = |ns: f64, of_known, of_bounds| {
        [of_known, of_bounds].map(|bound| Figure::new(scale(ns, measured_ns), bound))
    };
    let estimated = |scale: Figure| Figure { error: None, ..scale };
    let scales = match gpu.phases_of_all() {
        Some(_) if !busy.is_bound() => alike(busy.value, Bound::Exact, Bound::AtMost),
        Some(coverage) if coverage.attributed > 0.0 && (*is_partial || is_all_bound) => {
            // What phases found is divided by the times, which are uncertain with a bound among them.
            let ns = coverage.attributed * run_ns;
            match bounds {
                1.. if times.len() > 1 && is_all_bound => return None,
                1.. if times.len() > 1 => alike(ns, Bound::Uncertain, Bound::Uncertain),
                _ => alike(ns, Bound::Exact, Bound::Exact).map(estimated),
            }
        }
        // Upper bounds share what phases found beside the times that are known.
        Some(coverage) => {
            let sum_ns: f64 = times.iter().map(OwnTime::known_ns).sum();
            let known_ns = sum_ns.min(busy.value);
            let (bound_ns, rest_ns) =
                (measured_ns - sum_ns, coverage.attributed * run_ns - known_ns);
            let most_ns = most_beside_ns(coverage, known_ns, *run_ns);
            let of_bounds = |ns: f64, bound| Figure::new(scale(ns, bound_ns), bound);
            let of_bounds = match rest_ns {
                rest_ns if rest_ns >= bound_ns => of_bounds(bound_ns, Bound::AtMost),
                rest_ns if rest_ns <= 0.0 => of_bounds(bound_ns.min(most_ns), Bound::AtMost),
                rest_ns if bounds > 1 => of_bounds(rest_ns, Bound::Uncertain),
                rest_ns => estimated(of_bounds(rest_ns, Bound::Exact)),
            };
            [Figure::new(scale(known_ns, sum_ns), Bound::Exact), of_bounds]
        }
        // The sum of the own times exceeds the whole run.
        None if bounds > 0 && busy.value >= *run_ns && is_all_bound => return None,
        None if bounds > 0 && busy.value >= *run_ns => {
            alike(busy.value, Bound::Uncertain, Bound::Uncertain)
        }
        None if *is_partial => alike(busy.value, Bound::AtMost, Bound::AtMost),
        None => alike(busy.value, Bound::Exact, Bound::AtMost),
    };
    let [known, of_bounds] = scales;
    let share = |time: &OwnTime| {
        let value = known.value * time.known_ns() + of_bounds.value * time.bound_ns;
        let is_estimate = known.bound == Bound::Exact && known.value * time.error_ns > EXACT;
        match time.is_bound() {
            true => Figure { value, ..of_bounds },
            false if is_estimate => Figure::estimate(value, None),
            false => Figure { value, ..known },
        }
    };
    Some(times.iter().map(share).collect())
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
