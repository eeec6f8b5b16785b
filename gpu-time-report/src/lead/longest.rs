//! The function that most of a sum over calls is in, such as the time that the GPU waited.

use std::collections::HashMap;

use crate::tree::depth_first;
use crate::{Node, PerCall};

/// The minimum share of the sum of the functions around it at which a function inside is named instead: the reason is
/// in there.
const MOSTLY: f64 = 0.8;

/// The function with the largest sum.
pub struct Longest<'a> {
    pub site: usize,
    pub name: &'a str,
    pub ns: f64,
    /// Its paths as one.
    pub node: Node,
}

impl<'a> Longest<'a> {
    /// Returns the function with the largest sum over its calls, or the innermost function inside with most of it.
    /// `sum` returns the sum of a path, or `None` if the path must not be named.
    pub fn of(nodes: &'a [Node], sum: impl Fn(&Node) -> Option<f64>) -> Option<Longest<'a>> {
        let mut sums: Vec<Option<f64>> = nodes.iter().map(sum).collect();
        for (at, depth) in depth_first(nodes) {
            // Calls on the last level may be inside each other, so that their sum counts them several times.
            if depth + 1 >= Node::MAX_LEVELS {
                sums[at] = None;
            }
        }
        let mut paths = largest(nodes, &sums, None)?;
        for _ in 0..Node::MAX_LEVELS {
            let inside = largest(nodes, &sums, Some(&paths));
            let most_ns = MOSTLY * together(&sums, &paths);
            match inside.filter(|inside| together(&sums, inside) >= most_ns) {
                Some(inside) => paths = inside,
                None => break,
            }
        }
        let ns = together(&sums, &paths);
        let paths: Vec<&Node> = paths.into_iter().map(|at| &nodes[at]).collect();
        let first = paths.first()?;
        Some(Longest { site: first.site?, name: &first.name, ns, node: merged(&paths)? })
    }
}

/// Returns the paths of the function with the largest sum, of all or of those inside these paths. Recursive calls are
/// left out, because the sum of a call contains theirs.
fn largest(nodes: &[Node], sums: &[Option<f64>], around: Option<&[usize]>) -> Option<Vec<usize>> {
    let mut is_around = vec![false; nodes.len()];
    around.into_iter().flatten().for_each(|&at| is_around[at] = true);
    let (mut found, mut sums_of) = (Vec::new(), HashMap::<usize, f64>::new());
    let mut callers = Vec::new();
    for (at, depth) in depth_first(nodes) {
        callers.truncate(depth);
        let outermost = match around {
            Some(_) => callers.iter().position(|&caller| is_around[caller]),
            None => Some(0),
        };
        let site = nodes[at].site;
        let is_again = |&caller: &usize| sums[caller].is_some() && nodes[caller].site == site;
        let is_new = outermost.is_some_and(|from| !callers[from..].iter().any(is_again));
        if let Some((site, ns)) = site.filter(|_| is_new).zip(sums[at]) {
            found.push((site, at));
            *sums_of.entry(site).or_default() += ns;
        }
        callers.push(at);
    }
    let sites = found.iter().map(|(site, _)| *site);
    let largest = sites.max_by(|one, other| sums_of[one].total_cmp(&sums_of[other]))?;
    Some(found.into_iter().filter(|(site, _)| *site == largest).map(|(_, at)| at).collect())
}

fn together(sums: &[Option<f64>], paths: &[usize]) -> f64 {
    paths.iter().filter_map(|&at| sums[at]).sum()
}

/// Returns the sum of a value over all calls of a path.
pub fn total(node: &Node, of: fn(&PerCall) -> Option<f64>) -> f64 {
    node.per_call.as_ref().and_then(of).map_or(0.0, |mean_ns| mean_ns * node.calls)
}

/// Returns paths of one function as one. Its figures are sums, and means over the calls of all paths.
fn merged(paths: &[&Node]) -> Option<Node> {
    let calls: f64 = paths.iter().map(|node| node.calls).sum();
    let mean = |of: fn(&PerCall) -> Option<f64>| {
        let sums = paths.iter().map(|node| Some(of(node.per_call.as_ref()?)? * node.calls));
        sums.sum::<Option<f64>>().map(|sum| sum / calls)
    };
    let mut errors = paths.iter().map(|node| node.inclusive_error_ns);
    Some(Node {
        recorded: paths.iter().fold(0, |sum, node| node.recorded.saturating_add(sum)),
        calls,
        inclusive_ns: paths.iter().map(|node| node.inclusive_ns).sum(),
        inclusive_error_ns: errors.try_fold(0.0, |sum: f64, error| Some(sum.hypot(error?))),
        per_call: Some(PerCall {
            busy_ns: mean(|mean| Some(mean.busy_ns))?,
            span_ns: mean(|mean| Some(mean.span_ns))?,
            waited_ns: mean(|mean| mean.waited_ns),
            host_ns: mean(|mean| mean.host_ns),
            kernels: mean(|mean| mean.kernels),
        }),
        ..Node::clone(paths.first()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixtures::node;

    /// Returns a path of one call that waited for this long.
    fn path(name: &str, parent: Option<usize>, waited_ns: f64) -> Node {
        let mut node = node(name, parent, 0.0, 0.0);
        node.calls = 1.0;
        node.per_call.as_mut().unwrap().waited_ns = Some(waited_ns);
        node
    }

    fn waited_ns(node: &Node) -> Option<f64> {
        Some(total(node, |per_call| per_call.waited_ns))
    }

    fn longest(nodes: &[Node]) -> (&str, f64) {
        let Longest { name, node, .. } = Longest::of(nodes, waited_ns).unwrap();
        (name, total(&node, |per_call| per_call.waited_ns))
    }

    #[test]
    fn function_with_several_callers_is_found() {
        let mut nodes = vec![path("main", None, 100.0)];
        for caller in ["a", "b", "c", "d"] {
            nodes.push(path(caller, Some(0), 25.0));
            let caller = nodes.len() - 1;
            nodes.push(path("gemm", Some(caller), 24.0));
            nodes.push(path("gemm", Some(caller + 1), 20.0));
        }
        assert_eq!(longest(&nodes), ("gemm", 96.0));
        let gemm = Longest::of(&nodes, waited_ns).unwrap().node;
        assert_eq!((gemm.calls, gemm.recorded), (4.0, 40));
        nodes.retain(|node| node.name != "gemm");
        nodes.iter_mut().skip(1).for_each(|node| node.parent = Some(0));
        assert_eq!(longest(&nodes), ("main", 100.0));
    }

    /// The calls on the last level are inside each other, so that their sum is above that of all others.
    #[test]
    fn last_level_of_deep_recursion_is_not_named() {
        let mut nodes = vec![path("main", None, 100.0)];
        for level in 1..Node::MAX_LEVELS {
            nodes.push(path("f", Some(level - 1), 20.0));
        }
        nodes.last_mut().unwrap().calls = 300.0;
        nodes.push(path("g", Some(0), 30.0));
        let may_be_named = |node: &Node| node.calls > 1.0 || node.name == "g";
        let sum =
            |node: &Node| may_be_named(node).then(|| total(node, |per_call| per_call.waited_ns));
        assert_eq!(Longest::of(&nodes, sum).unwrap().name, "g");
    }

    #[test]
    fn callee_with_most_comes_before_functions_below() {
        let nodes = [
            path("main", None, 100.0),
            path("layer", Some(0), 90.0),
            path("gemm", Some(1), 60.0),
            path("norm", Some(1), 30.0),
            path("gemm", Some(0), 10.0),
        ];
        assert_eq!(longest(&nodes), ("layer", 90.0));
    }

    /// Most calls of `handle` wait for nothing, so that it must not be named.
    #[test]
    fn callee_of_function_that_must_not_be_named_is_found() {
        let nodes = [
            path("handle", None, 100.0),
            path("forward", Some(0), 60.0),
            path("check", Some(0), 30.0),
            path("layer", Some(1), 20.0),
            path("poll", None, 50.0),
            path("forward", Some(4), 10.0),
        ];
        let sum = |node: &Node| waited_ns(node).filter(|_| node.name != "handle");
        let Longest { name, node, .. } = Longest::of(&nodes, sum).unwrap();
        // All of its calls count, wherever they are.
        assert_eq!((name, node.calls), ("forward", 2.0));
    }
}
