//! The function that most of a sum over calls is in, such as the time that the GPU waited.

use std::collections::BTreeMap;

use crate::{Node, PerCall, tree};

/// The minimum share of its caller's sum at which a callee is named instead of the caller.
const MOSTLY: f64 = 0.8;

/// The function with the largest sum.
pub struct Longest<'a> {
    pub name: &'a str,
    /// Its paths as one.
    pub node: Node,
}

/// The paths among which a function is looked for.
struct Search<'a> {
    nodes: &'a [Node],
    children: Vec<Vec<usize>>,
    /// The sum of each path, or `None` if it must not be named.
    sums: Vec<Option<f64>>,
}

impl<'a> Longest<'a> {
    /// Returns the outermost function with the largest sum over its calls, or a function inside with
    /// most of it: one that it calls itself or, if none of these has that much, one that is called
    /// in several places. `sum` returns the sum of a path, or `None` if the path must not be named.
    pub fn of(nodes: &'a [Node], sum: impl Fn(&Node) -> Option<f64>) -> Option<Longest<'a>> {
        let (children, roots) = tree::children(nodes);
        let mut sums: Vec<Option<f64>> = nodes.iter().map(sum).collect();
        for (at, depth) in tree::depth_first(nodes) {
            // Calls on the last level may be inside each other, so that their sum counts them several times.
            if depth + 1 >= Node::MAX_LEVELS {
                sums[at] = None;
            }
        }
        let search = Search { nodes, children, sums };
        let mut paths = search.largest(search.outermost(roots))?;
        for _ in 0..Node::MAX_LEVELS {
            let Some(inner) = search.inside(&paths) else { break };
            paths = inner;
        }
        let paths: Vec<&Node> = paths.into_iter().map(|at| &nodes[at]).collect();
        Some(Longest { name: &paths.first()?.name, node: together(&paths)? })
    }
}

impl Search<'_> {
    /// Returns the paths that may be named and are inside no other such path.
    fn outermost(&self, roots: Vec<usize>) -> Vec<usize> {
        let (mut outermost, mut waiting) = (Vec::new(), roots);
        while let Some(at) = waiting.pop() {
            match self.sums[at] {
                Some(_) => outermost.push(at),
                None => waiting.extend(&self.children[at]),
            }
        }
        outermost
    }

    /// Returns the paths of the function that most of the sum of these paths is in.
    fn inside(&self, around: &[usize]) -> Option<Vec<usize>> {
        let most = MOSTLY * self.sum(around);
        let has_most = |paths: &Vec<usize>| self.sum(paths) >= most;
        let near = around.iter().flat_map(|&at| self.children[at].iter().copied());
        let near = near.filter(|&at| self.nodes[at].name != self.nodes[around[0]].name);
        let near = self.largest(near).filter(has_most);
        near.or_else(|| self.largest(self.below(around)).filter(has_most))
    }

    /// Returns the paths below these whose function is not among their callers. The sum of a call
    /// contains that of recursive calls inside.
    fn below(&self, around: &[usize]) -> Vec<usize> {
        let (mut below, mut callers) = (Vec::new(), Vec::new());
        let mut waiting: Vec<_> = around.iter().map(|&at| (at, 0)).collect();
        while let Some((at, depth)) = waiting.pop() {
            let name = &self.nodes[at].name;
            callers.truncate(depth);
            if depth > 0 && !callers.contains(&name) {
                below.push(at);
            }
            callers.push(name);
            waiting.extend(self.children[at].iter().map(|&inner| (inner, depth + 1)));
        }
        below
    }

    /// Returns those of the paths that are of the function with the largest sum.
    fn largest(&self, paths: impl IntoIterator<Item = usize>) -> Option<Vec<usize>> {
        let mut functions = BTreeMap::<&str, Vec<usize>>::new();
        for at in paths.into_iter().filter(|&at| self.sums[at].is_some()) {
            functions.entry(&self.nodes[at].name).or_default().push(at);
        }
        functions.into_values().max_by(|one, two| self.sum(one).total_cmp(&self.sum(two)))
    }

    fn sum(&self, paths: &[usize]) -> f64 {
        paths.iter().filter_map(|&at| self.sums[at]).sum()
    }
}

/// Returns the sum of a value over all calls of a path.
pub fn total(node: &Node, of: fn(&PerCall) -> Option<f64>) -> f64 {
    node.per_call.as_ref().and_then(of).map_or(0.0, |mean_ns| mean_ns * node.calls)
}

/// Returns paths of one function as one, or `None` if there are none. Its figures are sums, and means
/// over the calls of all paths.
fn together(paths: &[&Node]) -> Option<Node> {
    let (&first, others) = paths.split_first()?;
    if others.is_empty() {
        return Some(first.clone());
    }
    let calls: f64 = paths.iter().map(|node| node.calls).sum();
    let mean = |of: fn(&PerCall) -> Option<f64>| {
        let sums = paths.iter().map(|node| Some(of(node.per_call.as_ref()?)? * node.calls));
        sums.sum::<Option<f64>>().map(|sum| sum / calls)
    };
    let errors = paths.iter().map(|node| node.inclusive_error_ns);
    Some(Node {
        recorded: paths.iter().fold(0, |sum, node| node.recorded.saturating_add(sum)),
        calls,
        inclusive_ns: paths.iter().map(|node| node.inclusive_ns).sum(),
        inclusive_error_ns: errors.reduce(|one, other| Some(one?.hypot(other?))).flatten(),
        per_call: Some(PerCall {
            busy_ns: mean(|mean| Some(mean.busy_ns))?,
            span_ns: mean(|mean| Some(mean.span_ns))?,
            waited_ns: mean(|per_call| per_call.waited_ns),
            host_ns: mean(|per_call| per_call.host_ns),
            kernels: mean(|per_call| per_call.kernels),
        }),
        ..first.clone()
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
        let Longest { name, node } = Longest::of(nodes, waited_ns).unwrap();
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
        let Longest { name, node } = Longest::of(&nodes, sum).unwrap();
        assert_eq!((name, node.calls), ("forward", 1.0));
    }
}
