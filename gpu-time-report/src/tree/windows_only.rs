//! The work that only windows found: that of no annotated function, and that of calls without a time.

use crate::in_use::in_use_ns;
use crate::{Device, Node, Process, Source};

/// A part of the time on all devices.
#[derive(Clone, Copy)]
struct FoundWork {
    ns: f64,
    /// `None` if the error is unknown on any device.
    variance: Option<f64>,
}

/// The self times of functions on one device.
#[derive(Default)]
struct FunctionTimes {
    /// The time of all functions.
    ns: f64,
    /// The part of it that is not an upper bound.
    known_ns: f64,
    variance: f64,
}

/// Returns the paths of this work. It is estimated from its share of wall time in the windows. Unlike its ratio to the
/// functions' times, this depends neither on waits in those times nor on functions that run at the same time. Nothing
/// is known of devices without windows.
///
/// The tree of a merged report already has this work, as the sum over its processes.
pub fn found(nodes: &[Node], devices: &[Device], process: &Process) -> Vec<Node> {
    if !process.merged.is_empty() || nodes.is_empty() {
        return Vec::new();
    }
    let gpus = || devices.iter().filter(|device| device.is_gpu());
    let (mut not_timed, mut not_annotated) = (FoundWork::NONE, FoundWork::NONE);
    for (device, coverage) in gpus().filter_map(|device| Some((device, device.known_coverage()?))) {
        let wall_ns = in_use_ns(process, device);
        let functions = FunctionTimes::of(nodes, device, gpus().count() == 1);
        let beyond_ns = coverage.beyond(functions.ns, functions.variance.sqrt(), wall_ns);
        not_timed.add(beyond_ns, coverage.attributed_error, wall_ns);
        // Known times of functions leave less room if they are longer than the windows found.
        let room_ns = (coverage.busy * wall_ns - functions.known_ns).max(0.0);
        let ns = (coverage.not_annotated() * wall_ns).min(room_ns);
        not_annotated.add(ns, coverage.not_annotated_error, wall_ns);
    }
    let parts = [(Node::NOT_TIMED, not_timed), (Node::NOT_ANNOTATED, not_annotated)];
    parts.into_iter().filter_map(|(name, part)| part.node(name)).collect()
}

impl FoundWork {
    const NONE: FoundWork = FoundWork { ns: 0.0, variance: Some(0.0) };

    /// Adds the time on a device. `error` is that of its share of the wall time.
    fn add(&mut self, ns: f64, error: Option<f64>, wall_ns: f64) {
        self.ns += ns;
        let variance =
            if ns > 0.0 { error.map(|error| (error * wall_ns).powi(2)) } else { Some(0.0) };
        self.variance = self.variance.zip(variance).map(|(sum, more)| sum + more);
    }

    fn node(self, name: &str) -> Option<Node> {
        let FoundWork { ns, variance } = self;
        let error_ns = variance.map(f64::sqrt);
        (ns > 0.0).then(|| Node {
            name: name.to_owned(),
            inclusive_ns: ns,
            inclusive_error_ns: error_ns,
            self_ns: ns,
            self_error_ns: error_ns,
            ..Node::of(Source::Windows)
        })
    }
}

impl FunctionTimes {
    fn of(nodes: &[Node], device: &Device, is_only: bool) -> FunctionTimes {
        let mut times = FunctionTimes::default();
        for node in nodes {
            let ns = match node.self_ns_by_device.get(&device.id) {
                None if is_only => node.self_ns,
                ns => ns.copied().unwrap_or(0.0),
            };
            let part = if node.self_ns > 0.0 { ns / node.self_ns } else { 0.0 };
            times.ns += ns;
            times.known_ns += if node.upper_bound { 0.0 } else { ns };
            // An unknown error may be as large as the time.
            times.variance += (part * node.self_error_ns.unwrap_or(node.self_ns)).powi(2);
        }
        // While work of several functions runs at once, the GPU is busy for less time.
        if let Some(overlap) = device.overlap {
            times.ns -= overlap.ns;
            times.known_ns = if overlap.partial { 0.0 } else { times.known_ns - overlap.ns };
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::own_times::Shares;
    use crate::tree::fixtures::node;
    use crate::{Coverage, Snapshot};

    /// Functions took 40 % of the run. The windows' error is 0.4 %.
    #[test]
    fn only_work_beyond_the_errors_has_no_time() {
        let run_ns = process(None).wall_ns as f64;
        let not_timed = |attributed: f64, sampling_error: f64| {
            let windows = Coverage { attributed, busy: attributed, ..coverage() };
            let gpu = Device { coverage: Some(windows), ..gpu() };
            let mut node = node("decode", None, 0.4 * run_ns, 0.4 * run_ns);
            node.self_error_ns = Some(sampling_error * run_ns);
            let found = found(&[node], &[gpu], &process(None));
            let share = found.iter().find(|node| node.is_not_timed());
            share.map(|node| (1e3 * node.self_ns / run_ns).round())
        };
        assert_eq!([0.41, 0.42].map(|attributed| not_timed(attributed, 0.0)), [None, Some(20.0)]);
        assert_eq!(not_timed(0.42, 0.01), None);
    }

    #[test]
    fn windows_of_some_devices_leave_shares_uncertain() {
        let are_uncertain = |on_second: bool| {
            let run_ns = process(None).wall_ns as f64;
            let ids = ["cuda:0", "cuda:1"];
            let mut devices =
                ids.map(|id| Device { id: id.to_owned(), coverage: Some(coverage()), ..gpu() });
            devices[1].coverage = devices[1].coverage.take().filter(|_| on_second);
            let mut node = node("decode", None, 0.7 * run_ns, 0.7 * run_ns);
            node.self_ns_by_device = ids.map(|id| (id.to_owned(), 0.35 * run_ns)).into();
            let snapshot = Snapshot::new(process(None), devices.into(), Vec::new());
            Shares::of(&snapshot.with_tree(vec![node])).are_uncertain()
        };
        assert_eq!([true, false].map(are_uncertain), [false, true]);
    }
}
