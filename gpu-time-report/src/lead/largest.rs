//! The function with the most GPU time of its own.

use std::collections::HashMap;

use super::first::First;
use super::gpus::{is_any_idle, used_by_any};
use crate::busy_time::BusyTime;
use crate::own_times::{OwnTime, Shares, own_times};
use crate::{Snapshot, units};

/// The minimum share of starved samples at which a program as a whole is starved.
const NEARLY_ALL: f64 = 0.9;
/// The minimum share of the GPU time at which a function stands out.
const OUTSTANDING: f64 = 0.1;
/// The minimum share of the GPU time at which a function is the only one that has any.
const ALL: f64 = 0.995;
/// The reason to look at the only function. Functions that call it have its time as well.
const ONLY: &str = "it is the only function with GPU time of its own";
/// The reason to look at a function that has this much GPU time for certain.
const CERTAIN: &str = "of GPU time is its own, more than is certain of any other function";
/// Says what shows where the GPU waited, if times by events tell little.
const STARVED: &str = ", but nearly every call starved: the GPU waited for the CPU, and `GPU_TIME_KERNELS=on` \
     shows in which functions";
/// Says the same of the only function.
const STARVED_ALONE: &str = ", but nearly every call starved: the GPU waited for the CPU, and \
     `GPU_TIME_KERNELS=on` shows for how long";

/// Returns the function with the most GPU time of its own. `is_outside` says that the GPU waited for
/// the host mostly between the calls of functions.
pub fn largest(snapshot: &Snapshot, is_outside: bool) -> Option<First<'_>> {
    let times = own_times(snapshot, None);
    let first = times.first()?;
    let is_only = times.len() == 1;
    let Some(share) = Shares::of(snapshot).of_own(first) else {
        return Some(largest_bound(snapshot, first, &times, is_outside));
    };
    let rival = times.get(1).filter(|second| may_be_less(first, second));
    let why = if let Some(second) = rival {
        format!(
            "{share} of GPU time is its own, but too few calls were recorded to tell whether `{}` has more",
            second.name
        )
    } else if is_only && share.of_all >= ALL {
        ONLY.to_owned()
    } else if is_only || share.of_all >= OUTSTANDING {
        format!("{share} of GPU time is its own")
    } else {
        format!("it has the most GPU time of its own, {share}, but no function stands out")
    };
    Some(First::new(first.name, why, first.ns))
}

/// Returns `true` if the difference of two times is within two of its standard errors.
fn may_be_less(first: &OwnTime, second: &OwnTime) -> bool {
    first.ns - second.ns < 2.0 * first.error_ns.hypot(second.error_ns)
}

/// Returns the function to look at where all times are upper bounds, of which `first` is the largest. The largest bound
/// may be nothing but waits, so a function with much GPU time for certain comes before it.
fn largest_bound<'a>(
    snapshot: &Snapshot,
    first: &OwnTime<'a>,
    times: &[OwnTime<'a>],
    is_outside: bool,
) -> First<'a> {
    let (least, most) = (least_times(snapshot), most_times(snapshot));
    let most_ns = |time: &OwnTime| most[time.name];
    let certain_ns = |time: &OwnTime| least.get(time.name).map_or(0.0, |ns| ns.min(most_ns(time)));
    let all_ns: f64 = times.iter().map(most_ns).sum();
    let is_only = times.len() == 1;
    let certain = times.iter().map(|time| (time, certain_ns(time)));
    let certain = certain.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let certain = certain.filter(|(_, ns)| !is_only && *ns >= OUTSTANDING * all_ns);
    let (first, why) = match certain {
        Some((first, ns)) => (first, format!("at least {} {CERTAIN}", units::time(ns))),
        None => {
            let has = if is_only { ONLY } else { "its own GPU time has the largest upper bound" };
            (first, format!("{has}, at most {}", units::time(most_ns(first))))
        }
    };
    let what = match is_starved(snapshot) {
        true if !is_only => STARVED,
        // The GPU waited elsewhere.
        true if !is_outside => STARVED_ALONE,
        _ => "",
    };
    First::new(first.name, why + what, most_ns(first))
}

/// Returns the GPU time that each function has for certain: in a call timed by events, the GPU waited no longer than
/// the host took for the call.
fn least_times(snapshot: &Snapshot) -> HashMap<&str, f64> {
    let mut times = HashMap::<&str, f64>::new();
    for node in &snapshot.tree {
        if let Some(host_ns) = node.per_call.and_then(|mean| mean.host_ns) {
            *times.entry(&node.name).or_default() += (node.self_ns - node.calls * host_ns).max(0.0);
        }
    }
    times
}

/// Returns the GPU time that each function has at most. Upper bounds are no more than what windows
/// found of all functions.
pub fn most_times(snapshot: &Snapshot) -> HashMap<&str, f64> {
    let mut limits = HashMap::<&str, f64>::new();
    for gpu in snapshot.gpus() {
        let times = own_times(snapshot, Some(&gpu.id));
        let busy_ns = BusyTime::of(snapshot, gpu, &times).ns;
        for time in times {
            *limits.entry(time.name).or_default() += time.ns.min(busy_ns);
        }
    }
    let most_ns = |time: &OwnTime| match limits.get(time.name) {
        Some(limit_ns) if time.is_bound() => time.ns.min(*limit_ns),
        _ => time.ns,
    };
    own_times(snapshot, None).iter().map(|time| (time.name, most_ns(time))).collect()
}

/// Returns `true` if the GPU was idle for long, nearly every call starved and events timed all of
/// them, so that every time includes waits.
fn is_starved(snapshot: &Snapshot) -> bool {
    let on_gpu = || snapshot.all_series().filter(|series| series.is_gpu_time());
    let is_opened = on_gpu().any(|series| series.opened() > 0);
    let starved = on_gpu().fold(0.0, |sum, series| sum + series.starved as f64);
    let measured = on_gpu().fold(0.0, |sum, series| sum + series.measured as f64);
    let has_starved = measured > 0.0 && starved >= NEARLY_ALL * measured;
    !is_opened && has_starved && is_any_idle(snapshot, &used_by_any(snapshot)) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::fixtures::node;
    use crate::{Coverage, Device, Node, PerCall, Source};

    /// Returns why to look at one of these functions, of which a call takes these times on the GPU and on the host, in
    /// milliseconds. Events timed a hundred calls of each, in all of which the GPU may have waited.
    fn first(functions: &[(&str, f64, f64)], windows: Option<Coverage>) -> (String, String) {
        let path = |&(name, gpu_ms, host_ms): &(&str, f64, f64)| {
            let ns = gpu_ms * 1e8;
            let mut node = node(name, None, ns, ns);
            (node.source, node.upper_bound, node.calls) = (Source::Events, true, 100.0);
            let [busy_ns, host_ns] = [gpu_ms, host_ms].map(|ms| ms * 1e6);
            let mean = PerCall { busy_ns, span_ns: busy_ns, ..PerCall::default() };
            Node { per_call: Some(PerCall { host_ns: Some(host_ns), ..mean }), ..node }
        };
        let gpu = Device { coverage: windows, ..gpu() };
        let snapshot = Snapshot::new(process(None), vec![gpu], Vec::new());
        let snapshot = snapshot.with_tree(functions.iter().map(path).collect());
        let First { name, why, .. } = largest(&snapshot, false).unwrap();
        (name.to_owned(), why)
    }

    /// Nearly all that `load` took may have been the host's work.
    #[test]
    fn certain_time_comes_before_the_largest_bound() {
        let (name, why) = first(&[("load", 6.0, 5.999), ("compute", 4.0, 0.2)], None);
        assert_eq!(name, "compute");
        let expected =
            "at least 380.0 ms of GPU time is its own, more than is certain of any other function";
        assert_eq!(why, expected);
    }

    #[test]
    fn bound_is_not_called_time() {
        let (name, why) = first(&[("load", 6.0, 6.1), ("compute", 4.0, 3.9)], None);
        assert_eq!(name, "load");
        assert_eq!(why, "its own GPU time has the largest upper bound, at most 600.0 ms");
    }

    #[test]
    fn sampled_function_that_may_not_be_the_largest_has_a_rival() {
        let why = |error_ns| {
            let mut nodes = vec![node("always", None, 1e8, 1e8), node("seldom", None, 8e7, 8e7)];
            nodes[1].self_error_ns = error_ns;
            let snapshot = Snapshot::new(process(None), vec![gpu()], Vec::new());
            largest(&snapshot.with_tree(nodes), false).unwrap().why
        };
        let rival = "~55.6% of GPU time is its own, but too few calls were recorded to tell whether `seldom` has more";
        assert_eq!([Some(1.1e7), None].map(why), [rival; 2]);
        assert_eq!(why(Some(9e6)), "~55.6% of GPU time is its own");
        assert_eq!(why(Some(1e6)), "55.6% of GPU time is its own");
    }

    /// The run takes 1.234 s, of which functions kept the GPU busy for a tenth.
    #[test]
    fn bound_is_no_more_than_windows_found() {
        let windows = Coverage { busy: 0.9, idle: 0.1, attributed: 0.1, ..coverage() };
        let (_, why) = first(&[("load", 6.0, 6.1), ("compute", 4.0, 3.9)], Some(windows.clone()));
        assert_eq!(why, "its own GPU time has the largest upper bound, at most 123.4 ms");
        let (_, why) = first(&[("load", 6.0, 6.1)], Some(windows));
        assert_eq!(why, "it is the only function with GPU time of its own, at most 123.4 ms");
    }
}
