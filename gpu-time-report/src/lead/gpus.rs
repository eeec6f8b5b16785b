//! The GPUs that functions use, and how idle they were.

use std::collections::HashMap;

use crate::busy_time::Accounted;
use crate::idle::Idle;
use crate::{Device, Node, Snapshot};

/// The minimum idle share of a GPU that a host-bound function uses at which it is named first. Below
/// it, no launch-bound function is named either.
pub const IDLE: f64 = 0.3;

/// The minimum share of a function's time that it has on a GPU which it uses. A GPU on which it ran one kernel says
/// nothing about its calls.
const USED: f64 = 0.1;

/// Returns the GPUs that a function uses, together with those that it calls. These are the GPUs that all functions use
/// if it has no GPU time.
pub fn used_by<'a>(snapshot: &'a Snapshot, function: &str) -> Vec<&'a Device> {
    let mut are_inside = vec![false; snapshot.tree.len()];
    let paths = snapshot.tree.iter().enumerate().filter(|&(at, node)| {
        let caller = node.parent.filter(|caller| *caller < at);
        are_inside[at] = node.name == function || caller.is_some_and(|caller| are_inside[caller]);
        are_inside[at]
    });
    let used = with_much_time(snapshot, paths.map(|(_, node)| node));
    used.unwrap_or_else(|| used_by_any(snapshot))
}

/// Returns the GPUs that functions use, or all if that is not known.
pub fn used_by_any(snapshot: &Snapshot) -> Vec<&Device> {
    with_much_time(snapshot, snapshot.tree.iter()).unwrap_or_else(|| snapshot.gpus().collect())
}

/// Returns the GPUs on which these paths have much of their time. `None` if they have none, or if it is not known by
/// device.
fn with_much_time<'a>(
    snapshot: &'a Snapshot,
    paths: impl Iterator<Item = &'a Node>,
) -> Option<Vec<&'a Device>> {
    let mut times = HashMap::<&str, f64>::new();
    for (id, ns) in paths.flat_map(|node| &node.self_ns_by_device) {
        *times.entry(id).or_default() += ns;
    }
    let least_ns = USED * times.values().sum::<f64>();
    let has_much = |device: &&Device| times.get(&*device.id).is_some_and(|ns| *ns >= least_ns);
    (least_ns > 0.0).then(|| snapshot.gpus().filter(has_much).collect())
}

/// Returns `true` if any of these GPUs was idle for long. Without windows, functions that account for most of the run
/// on every one tell that none was, and the rest is unknown.
pub fn is_any_idle(snapshot: &Snapshot, gpus: &[&Device]) -> Option<bool> {
    let known = gpus.iter().filter_map(|gpu| Idle::of(snapshot, gpu));
    let known = known.map(|idle| idle.share >= IDLE).reduce(|one, other| one || other);
    let is_busy = |gpu: &&Device| most_idle_share(snapshot, gpu).is_some_and(|share| share <= IDLE);
    known.or_else(|| (!gpus.is_empty() && gpus.iter().all(is_busy)).then_some(false))
}

/// Returns the idle share of a GPU that windows found or, without them, that functions leave. `None`
/// if the functions' share is an upper bound.
pub fn most_idle_share(snapshot: &Snapshot, gpu: &Device) -> Option<f64> {
    match Idle::of(snapshot, gpu) {
        Some(idle) => Some(idle.share),
        None => Some(1.0 - Accounted::of(snapshot, gpu).filter(|all| !all.is_bound)?.share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{gpu, only_functions, process};
    use crate::lead::Lead;
    use crate::tree::fixtures::node;

    /// Returns a report of a busy GPU and of an idle one, and of a launch-bound function that is called by another and
    /// has this share of its time on the busy one.
    fn report(on_busy: f64) -> Snapshot {
        let gpu = |id: &str, idle, functions| {
            let coverage = Some(only_functions(idle, functions));
            Device { id: id.to_owned(), coverage, ..gpu() }
        };
        let ns = 0.4 * process(None).wall_ns as f64;
        let mut step = Node { parent: Some(0), ..node("step", None, ns, ns) };
        let mean = step.per_call.as_mut().unwrap();
        (mean.span_ns, mean.waited_ns) = (1.5 * mean.busy_ns, Some(0.5 * mean.busy_ns));
        let shares = [("cuda:0", on_busy), ("cuda:1", 1.0 - on_busy)];
        step.self_ns_by_device = shares.map(|(id, share)| (id.to_owned(), share * ns)).into();
        let devices =
            vec![gpu("cuda:0", 0.1, 0.4 * on_busy), gpu("cuda:1", 0.9, 0.4 * (1.0 - on_busy))];
        let tree = vec![node("main", None, ns, 0.0), step];
        Snapshot::new(process(None), devices, Vec::new()).with_tree(tree)
    }

    fn used(snapshot: &Snapshot, function: &str) -> Vec<String> {
        used_by(snapshot, function).iter().map(|gpu| gpu.id.clone()).collect()
    }

    #[test]
    fn function_uses_the_gpus_of_its_callees() {
        let snapshot = report(0.5);
        assert_eq!(used(&snapshot, "main"), ["cuda:0", "cuda:1"]);
        assert_eq!(used(&report(0.99), "main"), ["cuda:0"]);
        // It has no time, so it may wait for any GPU that is used.
        assert_eq!(used(&report(0.01), "other"), ["cuda:1"]);
    }

    #[test]
    fn gpus_are_all_used_if_times_are_not_known_by_device() {
        let mut snapshot = report(0.5);
        snapshot.tree.iter_mut().for_each(|node| node.self_ns_by_device.clear());
        assert_eq!(used(&snapshot, "step"), ["cuda:0", "cuda:1"]);
    }

    /// One kernel on an idle GPU says nothing about the calls.
    #[test]
    fn function_on_a_busy_gpu_is_not_launch_bound() {
        let is_launch_bound = |on_busy| {
            let line = Lead::of(&report(on_busy)).line().unwrap();
            line.contains("Look at step first: it is launch-bound")
        };
        assert_eq!([0.0, 0.5, 0.99].map(is_launch_bound), [true, true, false]);
    }
}
