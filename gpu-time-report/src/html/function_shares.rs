//! The functions' shares of a device's time.

use crate::figure::{Bound, Figure};
use crate::gpu_time::GpuTime;
use crate::own_times::{EXACT, OwnTime};

/// By so much sums of the same times may differ.
const ROUNDING_NS: f64 = 1.0;

/// Returns the share of each function with own time on a GPU. `None` if it is unknown how to divide the time.
///
/// Times that are known keep their parts of the time for which functions kept the GPU busy, and upper bounds get at most
/// the rest. If there is none, they get at most what phases found of other work or, without phases, as much of their time as
/// the others. Work that ran at once is a part of several own times, and counts once.
pub fn function_shares(gpu: &GpuTime) -> Option<Vec<Figure>> {
    let times = &gpu.times;
    let known_ns: f64 = times.iter().map(OwnTime::known_ns).sum();
    let bounds_ns: f64 = times.iter().map(|time| time.bound_ns).sum();
    let phases = gpu.phases_of_all();
    let rest_ns = gpu.busy.value - known_ns;
    let is_left = rest_ns > ROUNDING_NS;
    let is_cut = is_left && bounds_ns > rest_ns + ROUNDING_NS;
    if is_cut && times.len() > 1 && gpu.is_all_bound() {
        return None;
    }
    let factor = |part_ns: f64, of_ns: f64| if of_ns > part_ns { part_ns / of_ns } else { 1.0 };
    let known = factor(gpu.busy.value, known_ns);
    let of_known = match known / gpu.in_use_ns {
        factor if !gpu.is_partial => Figure::new(factor, Bound::Exact),
        factor if phases.is_some() => Figure::estimate(factor, None),
        factor => Figure::new(factor, Bound::AtMost),
    };
    let bounds = times.iter().filter(|time| time.is_bound()).count();
    let part = match phases {
        _ if is_left => factor(rest_ns, bounds_ns),
        Some(phases) => factor((phases.busy * gpu.in_use_ns - known_ns).max(0.0), bounds_ns),
        None => known,
    };
    let of_bounds = match part / gpu.in_use_ns {
        factor if !is_cut => Figure::new(factor, Bound::AtMost),
        factor if bounds == 1 && phases.is_some() => Figure::estimate(factor, None),
        factor => Figure::new(factor, Bound::Uncertain),
    };
    let share = |time: &OwnTime| {
        let value = of_known.value * time.known_ns() + of_bounds.value * time.bound_ns;
        let is_estimate = of_known.bound == Bound::Exact && of_known.value * time.error_ns > EXACT;
        if time.is_bound() {
            Figure { value, ..of_bounds }
        } else if is_estimate {
            Figure::estimate(value, None)
        } else {
            Figure { value, ..of_known }
        }
    };
    Some(times.iter().map(share).collect())
}
