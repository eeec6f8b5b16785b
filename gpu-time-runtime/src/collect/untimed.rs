//! The work of annotated functions without a time: those whose calls are longer than phases, or all in warm-up. Phases
//! tell how long it ran.

use std::collections::BTreeMap;

use gpu_time_report::{Device, Node, Source, value};

use crate::collect::state::SiteState;
use crate::record::phase::controller;
use crate::types::site_time::SiteTime;

/// Adds the work to the functions' paths in the tree. A function without a path gets one. With several paths, it is
/// unknown which of them enqueued the work, so it becomes a share of the device.
pub(super) fn add(devices: &mut [Device], tree: &mut Vec<Node>, states: &[SiteState]) {
    for (at, times) in untimed(devices, states) {
        let paths: Vec<usize> =
            (0..tree.len()).filter(|&node| tree[node].site == Some(at)).collect();
        // In one phase for the whole run, records tell the function's own work, part by part.
        let is_known = paths.iter().any(|&path| tree[path].self_ns > 0.0);
        let is_drawn = times.iter().any(|(_, time)| time.is_drawn);
        match paths[..] {
            [] => tree.push(path(&states[at], at, devices, &times)),
            [only] if !is_known || is_drawn => {
                let Node { parent, callers_unknown, .. } = tree[only];
                let found = path(&states[at], at, devices, &times);
                take_off_caller(tree, parent, found.self_ns);
                tree[only] = value!(Node { parent, callers_unknown, ..found });
            }
            [_, _, ..] if !is_known => add_to_devices(devices, &times),
            _ => {}
        }
    }
}

/// Adds the times to the shares of the devices, as work that belongs to no path.
fn add_to_devices(devices: &mut [Device], times: &[(usize, SiteTime)]) {
    for (device, time) in times {
        let Some(coverage) = &mut devices[*device].coverage else { continue };
        if coverage.covered_ns > 0.0 {
            let error = time.error_ns.map(|ns| ns / coverage.covered_ns);
            coverage.not_timed += time.ns / coverage.covered_ns;
            coverage.not_timed_error =
                coverage.not_timed_error.zip(error).map(|(one, other)| one + other);
        }
    }
}

/// Takes the time off the innermost caller that events timed, whose brackets contain it.
fn take_off_caller(tree: &mut [Node], mut caller: Option<usize>, ns: f64) {
    while let Some(at) = caller {
        let node = &mut tree[at];
        if node.source == Source::Events && node.recorded > 0 {
            let rest = (1.0 - ns / node.self_ns).max(0.0);
            if rest.is_finite() {
                node.self_ns *= rest;
                node.self_ns_by_device.values_mut().for_each(|of| *of *= rest);
            }
            return;
        }
        caller = node.parent;
    }
}

/// Returns the times of the functions without a time, by index in the report, with the indices of their devices.
fn untimed(devices: &[Device], states: &[SiteState]) -> BTreeMap<usize, Vec<(usize, SiteTime)>> {
    let mut untimed = BTreeMap::<_, Vec<_>>::new();
    for (device, of) in devices.iter().enumerate().filter(|(_, of)| of.coverage.is_some()) {
        let ordinal = of.id.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok());
        for time in ordinal.map(controller::site_times).unwrap_or_default() {
            let at = (time.site as usize).wrapping_sub(1);
            if states.get(at).is_some_and(|state| !state.has_gpu_times()) {
                untimed.entry(at).or_default().push((device, time));
            }
        }
    }
    untimed
}

/// Returns the path of a function with these times on its devices.
fn path(state: &SiteState, at: usize, devices: &[Device], times: &[(usize, SiteTime)]) -> Node {
    let error_ns = times.iter().try_fold(0.0_f64, |sum, (_, of)| Some(sum.hypot(of.error_ns?)));
    let on = times.iter().map(|(device, time)| (devices[*device].id.clone(), time.ns));
    value!(Node {
        name: state.site.name().to_owned(),
        site: Some(at),
        calls: state.calls.calls() as f64,
        self_ns: times.iter().fold(0.0, |sum, (_, time)| sum + time.ns),
        self_error_ns: error_ns,
        inclusive_error_ns: error_ns,
        self_ns_by_device: on.collect(),
        ..Node::of(Source::Opened)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_taken_off_the_caller_that_events_timed() {
        let node = |source, parent, self_ns| {
            let self_ns_by_device = [("cuda:0".to_owned(), self_ns)].into();
            let recorded = u64::from(source == Source::Events);
            value!(Node { parent, recorded, self_ns, self_ns_by_device, ..Node::of(source) })
        };
        let tree = [
            node(Source::Events, None, 50.0),
            node(Source::Events, Some(0), 100.0),
            node(Source::Opened, Some(1), 7.0),
        ];
        let own_after = |ns| {
            let mut tree = tree.clone();
            take_off_caller(&mut tree, Some(2), ns);
            tree.map(|node| (node.self_ns, node.self_ns_by_device["cuda:0"]))
        };
        assert_eq!(own_after(40.0), [(50.0, 50.0), (60.0, 60.0), (7.0, 7.0)]);
        // No more than there is.
        assert_eq!(own_after(400.0)[1], (0.0, 0.0));
    }
}
