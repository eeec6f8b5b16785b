//! The work that only phases found: that of no annotated function, and that of calls without a time.

use crate::in_use::in_use_ns;
use crate::{Device, Node, Process, Source};

/// A part of the time on all devices.
#[derive(Clone, Copy)]
struct FoundWork {
    ns: f64,
    /// `None` if the error is unknown on any device.
    variance: Option<f64>,
}

/// Returns the paths of this work, from its shares of wall time in the phases. Nothing is known of devices without
/// phases.
///
/// The tree of a merged report already has this work, as the sum over its processes.
pub fn found(nodes: &[Node], devices: &[Device], process: &Process) -> Vec<Node> {
    if !process.merged.is_empty() || nodes.is_empty() {
        return Vec::new();
    }
    let gpus = devices.iter().filter(|device| device.is_gpu());
    let (mut not_timed, mut not_annotated) = (FoundWork::NONE, FoundWork::NONE);
    for (device, coverage) in gpus.filter_map(|device| Some((device, device.known_coverage()?))) {
        let wall_ns = in_use_ns(process, device);
        not_timed.add(coverage.not_timed, coverage.not_timed_error, wall_ns);
        not_annotated.add(coverage.not_annotated(), coverage.not_annotated_error, wall_ns);
    }
    let parts = [(Node::NOT_TIMED, not_timed), (Node::NOT_ANNOTATED, not_annotated)];
    parts.into_iter().filter_map(|(name, part)| part.node(name)).collect()
}

impl FoundWork {
    const NONE: FoundWork = FoundWork { ns: 0.0, variance: Some(0.0) };

    /// Adds a share of a device's wall time.
    fn add(&mut self, share: f64, error: Option<f64>, wall_ns: f64) {
        self.ns += share * wall_ns;
        let variance =
            if share > 0.0 { error.map(|error| (error * wall_ns).powi(2)) } else { Some(0.0) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::own_times::Shares;
    use crate::tree::fixtures::node;
    use crate::{Coverage, Snapshot};

    #[test]
    fn functions_without_a_time_are_a_path() {
        let run_ns = process(None).wall_ns as f64;
        let windows = Coverage { not_timed: 0.2, not_timed_error: Some(0.01), ..coverage() };
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let found =
            found(&[node("decode", None, 0.4 * run_ns, 0.4 * run_ns)], &[gpu], &process(None));
        let found = found.iter().find(|node| node.is_not_timed()).unwrap();
        let shares =
            [found.self_ns, found.self_error_ns.unwrap()].map(|ns| (1e3 * ns / run_ns).round());
        assert_eq!(shares, [200.0, 10.0]);
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
