use super::figures;
use crate::Analysis;
use crate::fixtures::{gpu, only_functions, process};
use crate::tree::fixtures::node;
use crate::{Device, Node, Snapshot};

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
    let analysis = Analysis::of(snapshot);
    let figures = figures(&analysis);
    let function = node(function, None, 0.0, 0.0).site;
    figures.used(function).iter().map(|gpu| gpu.device.id.clone()).collect()
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
        let line = Analysis::of(&report(on_busy)).lead.line().unwrap();
        line.contains("Look at step first: it waits for the CPU")
    };
    assert_eq!([0.0, 0.5, 0.99].map(is_launch_bound), [true, true, false]);
}
