//! The call tree of a report, by path.

use std::collections::BTreeMap;

use super::Run;
use super::report::Node;

/// The most by which CUPTI's time of a spin may exceed the requested time, in nanoseconds.
pub const OVER: f64 = 1_500.0;

/// Returns the names from the outermost function or span to this one.
fn path(tree: &[Node], node: &Node) -> String {
    let name = node.name.rsplit("::").next().unwrap_or_default().to_owned();
    match node.parent {
        Some(parent) => format!("{}/{name}", path(tree, &tree[parent])),
        None => name,
    }
}

/// Returns a report's call-tree nodes by path, without the work outside annotated functions. Asserts everything that must
/// hold for every tree.
#[track_caller]
pub fn paths(run: &Run) -> BTreeMap<String, &Node> {
    let tree = &run.report().tree;
    let shares: f64 = tree.iter().map(|node| node.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{tree:#?}");
    let inclusive = |node: &&Node| node.inclusive_ns;
    let roots: f64 = tree.iter().filter(|node| node.parent.is_none()).map(|n| inclusive(&n)).sum();
    let own: f64 = tree.iter().map(|node| node.self_ns).sum();
    assert!((roots - own).abs() < 1e-6 * own, "{roots} of {own}: {tree:#?}");
    for (at, node) in tree.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent < at), "{tree:#?}");
        assert!(node.self_ns <= node.inclusive_ns * (1.0 + 1e-9), "{node:?}");
    }
    let annotated = tree.iter().filter(|node| node.name != "<not annotated>");
    annotated.map(|node| (path(tree, node), node)).collect()
}

/// Asserts that `found` is the time of spins that take `ns` in total.
#[track_caller]
pub fn assert_time(found: f64, ns: f64, kernels: f64) {
    assert!(found >= 0.999 * ns && found <= ns + kernels * OVER, "{found} for {ns}");
}
