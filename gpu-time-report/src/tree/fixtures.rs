//! A call tree used in tests.

use super::{Node, PerCall, Source};
use crate::Site;

/// Returns the index of a function: the first for some names, and for others one that no report of the tests has.
fn site(name: &str) -> usize {
    let of_name = |sum: usize, byte: u8| 31 * sum % 100_003 + 1_000 + usize::from(byte);
    match name {
        "pass" | "decode" | "model::decode" => 0,
        _ => name.bytes().fold(0, of_name),
    }
}

/// Returns the paths with the indices of these functions.
pub fn of_sites(nodes: Vec<Node>, sites: &[Site]) -> Vec<Node> {
    let site = |node: &Node| sites.iter().position(|site| site.name == node.name);
    nodes.into_iter().map(|node| Node { site: site(&node).or(node.site), ..node }).collect()
}

/// Returns a path of the call tree.
pub fn node(name: &str, parent: Option<usize>, inclusive_ns: f64, self_ns: f64) -> Node {
    Node {
        name: name.to_owned(),
        site: Some(site(name)),
        parent,
        recorded: 10,
        calls: 160.0,
        inclusive_ns,
        self_ns,
        per_call: Some(PerCall {
            busy_ns: inclusive_ns / 160.0,
            span_ns: inclusive_ns / 100.0,
            waited_ns: Some(0.0),
            host_ns: Some(inclusive_ns / 90.0),
            kernels: Some(3.0),
        }),
        ..Node::of(Source::Opened)
    }
}

/// Returns the call tree of a launch-bound program.
pub fn tree() -> Vec<Node> {
    let mut pass = node("pass", None, 320_000.0, 20_000.0);
    let per_call = pass.per_call.as_mut().unwrap();
    (per_call.span_ns, per_call.waited_ns) = (1_210_000.0, Some(890_000.0));
    vec![
        pass,
        node("norm", Some(0), 100_000.0, 100_000.0),
        node("attention", Some(0), 200_000.0, 150_000.0),
        node("norm", Some(2), 50_000.0, 50_000.0),
    ]
}

/// Returns the path of helper threads that worked for the function above.
pub fn helpers(parent: usize, self_ns: f64) -> Node {
    let per_call = PerCall { busy_ns: self_ns / 160.0, kernels: Some(3.0), ..PerCall::default() };
    Node {
        site: None,
        per_call: Some(per_call),
        ..node(Node::HELPER_THREADS, Some(parent), self_ns, self_ns)
    }
}

/// Returns a call tree measured by events, with one path in which the GPU may have waited.
pub fn by_events() -> Vec<Node> {
    let mut nodes = tree();
    for node in &mut nodes {
        node.source = Source::Events;
        if let Some(mean) = &mut node.per_call {
            *mean = PerCall { busy_ns: mean.busy_ns, span_ns: mean.busy_ns, ..PerCall::default() };
        }
    }
    nodes[3].upper_bound = true;
    nodes
}
