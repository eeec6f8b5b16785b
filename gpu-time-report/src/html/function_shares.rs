//! The functions' shares of a device's time.

use crate::Coverage;
use crate::coverage::FAR;
use crate::gpu_time::GpuTime;
use crate::own_times::{Bound, EXACT, OwnTime, Share, sum};

/// The share by which phases without an error contradict what is known.
const FAR_WITHOUT_ERROR: f64 = 0.1;

/// Returns the share of each function with own time on a GPU. `None` if it is unknown how to divide the time.
///
/// The parts of the own times that are known, and those that are upper bounds, have a scale each.
pub fn function_shares(gpu: &GpuTime) -> Option<Vec<Share>> {
    let GpuTime { device, busy, in_use, .. } = gpu;
    let (times, run_ns) = (&busy.times, in_use.ns);
    let measured_ns = sum(times);
    let bounds = times.iter().filter(|time| time.is_bound()).count();
    let scale = |ns: f64, of_ns: f64| if of_ns > 0.0 { ns / of_ns / run_ns } else { 0.0 };
    // Work that ran at once is a part of several own times, and counts once.
    let alike = |ns: f64, of_known, of_bounds| {
        let scale = scale(ns, measured_ns);
        [(scale, of_known), (scale, of_bounds)]
    };
    let scales = match gpu.phases_of_all() {
        Some(_) if !busy.is_bound => alike(busy.ns, Bound::Exact, Bound::AtMost),
        Some(coverage) if coverage.attributed > 0.0 && (busy.is_partial || busy.is_all_bound) => {
            // What phases found is divided by the times, which are uncertain with a bound among them.
            let bound = match bounds {
                1.. if times.len() > 1 && busy.is_all_bound => return None,
                1.. if times.len() > 1 => Bound::Uncertain,
                _ => Bound::Estimate,
            };
            alike(coverage.attributed * run_ns, bound, bound)
        }
        // Upper bounds share what phases found beside the times that are known.
        Some(coverage) => {
            let overlap_ns = device.overlap.map_or(0.0, |overlap| overlap.ns);
            let sum_ns: f64 = times.iter().map(OwnTime::known_ns).sum();
            let known_ns = (sum_ns - overlap_ns).clamp(0.0, run_ns);
            let (bound_ns, rest_ns) =
                (measured_ns - sum_ns, coverage.attributed * run_ns - known_ns);
            let most_ns = most_beside_ns(coverage, known_ns, run_ns);
            let (ns, bound) = match rest_ns {
                rest_ns if rest_ns >= bound_ns => (bound_ns, Bound::AtMost),
                rest_ns if rest_ns <= 0.0 => (bound_ns.min(most_ns), Bound::AtMost),
                rest_ns if bounds > 1 => (rest_ns, Bound::Uncertain),
                rest_ns => (rest_ns, Bound::Estimate),
            };
            [(scale(known_ns, sum_ns), Bound::Exact), (scale(ns, bound_ns), bound)]
        }
        // The sum of the own times exceeds the whole run.
        None if bounds > 0 && busy.ns >= run_ns && busy.is_all_bound => return None,
        None if bounds > 0 && busy.ns >= run_ns => {
            alike(busy.ns, Bound::Uncertain, Bound::Uncertain)
        }
        None if busy.is_partial => alike(busy.ns, Bound::AtMost, Bound::AtMost),
        None => alike(busy.ns, Bound::Exact, Bound::AtMost),
    };
    let [(of_known, known), (of_bound, bound)] = scales;
    let share = |time: &OwnTime| {
        let is_estimate = of_known * time.error_ns > EXACT;
        let known = if is_estimate { known.max(Bound::Estimate) } else { known };
        let of_all = of_known * time.known_ns() + of_bound * time.bound_ns;
        Share { of_all, bound: if time.is_bound() { bound } else { known } }
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
