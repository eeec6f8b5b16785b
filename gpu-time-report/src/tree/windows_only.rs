//! The work that only phases found: that of no annotated function, and that of calls without a time.

use crate::{Coverage, Device, Node, Process, Source};

/// Returns the paths of this work, from its shares of wall time in the phases. Nothing is known of devices without
/// phases.
///
/// The tree of a merged report already has this work, as the sum over its processes.
pub fn found(nodes: &[Node], devices: &[Device], process: &Process) -> Vec<Node> {
    if !process.merged.is_empty() || nodes.is_empty() {
        return Vec::new();
    }
    type Part = fn(&Coverage) -> (f64, Option<f64>);
    let parts: [(&str, Part); 2] = [
        (Node::NOT_TIMED, |phases| (phases.not_timed, phases.not_timed_error)),
        (Node::NOT_ANNOTATED, |phases| (phases.not_annotated(), phases.not_annotated_error)),
    ];
    let gpus = devices.iter().filter(|device| device.is_gpu());
    let known = gpus.filter_map(|gpu| Some((process.in_use_ns(gpu), gpu.known_coverage()?)));
    let known: Vec<(f64, &Coverage)> = known.collect();
    let path = |(name, part): (&str, Part)| {
        let found = known.iter().map(|(wall_ns, phases)| {
            let (share, error) = part(phases);
            (share * wall_ns, error.map(|error| error * wall_ns))
        });
        let found: Vec<(f64, Option<f64>)> = found.filter(|(ns, _)| *ns > 0.0).collect();
        // Unknown if it is on any device.
        let error = |sum: f64, (_, error): &(f64, Option<f64>)| Some(sum.hypot((*error)?));
        let (ns, error_ns) =
            (found.iter().map(|(ns, _)| ns).sum(), found.iter().try_fold(0.0, error));
        (!found.is_empty()).then(|| Node {
            name: name.to_owned(),
            inclusive_ns: ns,
            inclusive_error_ns: error_ns,
            self_ns: ns,
            self_error_ns: error_ns,
            ..Node::of(Source::Windows)
        })
    };
    parts.into_iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;
    use crate::figure::Bound;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::Owner;
    use crate::tree::fixtures::node;

    #[test]
    fn functions_without_a_time_are_a_path() {
        let run_ns = process(None).wall_ns as f64;
        let windows = Coverage { not_timed: 0.2, not_timed_error: Some(0.01), ..coverage() };
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let found =
            found(&[node("decode", None, 0.4 * run_ns, 0.4 * run_ns)], &[gpu], &process(None));
        let found = found.iter().find(|node| node.owner() == Owner::NotTimed).unwrap();
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
            let snapshot = snapshot.with_tree(vec![node]);
            let share = snapshot.analyzed(|report| report.shares.of_path(&snapshot.tree[0]));
            share.unwrap().bound == Bound::Uncertain
        };
        assert_eq!([true, false].map(are_uncertain), [false, true]);
    }
}
