//! Merges call trees path by path.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::merge::join;
use gpu_time_report::{Node, Owner, PerCall, Source, value};

use super::combine::add;

/// The sum of the call trees added so far. Parents come before their children.
#[derive(Default)]
pub struct MergedTree {
    nodes: Vec<Node>,
    /// The self time of each path by device index. `None` if a report does not contain it.
    by_device: Vec<Option<BTreeMap<usize, f64>>>,
    /// The index of each path in `nodes`, by its caller and by what its own time counts for. The time that only phases found
    /// is the sum of the estimates for each process, because processes with phases differ in wall time.
    known: HashMap<(Option<usize>, Owner), usize>,
}

impl MergedTree {
    /// Adds the tree of a report. `sites` maps the indices of its sites to those in the merged
    /// report, and `devices` the ids of its devices to the indices of the merged ones.
    pub fn add(&mut self, tree: &[Node], sites: &[usize], devices: &HashMap<&str, usize>) {
        // The index in `nodes` of each path of the report.
        let mut places: Vec<usize> = Vec::with_capacity(tree.len());
        for node in tree {
            let parent = node.parent.and_then(|parent| places.get(parent).copied());
            let site = node.site.and_then(|site| sites.get(site)).copied();
            let times = node.self_ns_by_device.iter();
            let times = times.filter_map(|(id, ns)| Some((*devices.get(&**id)?, *ns)));
            let is_known = node.self_ns <= 0.0 || !node.self_ns_by_device.is_empty();
            let by_device = is_known.then(|| times.collect());
            let node = value!(Node { self_ns_by_device: BTreeMap::new(), ..node.clone() });
            places.push(self.add_path(value!(Node { parent, site, ..node }), by_device));
        }
    }

    /// Adds a path with its self time on each device.
    fn add_path(&mut self, node: Node, by_device: Option<BTreeMap<usize, f64>>) -> usize {
        let next = self.nodes.len();
        let at = *self.known.entry((node.parent, node.owner())).or_insert(next);
        match self.nodes.get_mut(at) {
            Some(ours) => add_node(ours, &node),
            None => {
                self.nodes.push(node);
                self.by_device.push(Some(BTreeMap::new()));
            }
        }
        let ours = &mut self.by_device[at];
        *ours = ours.take().zip(by_device).map(|(mut ours, theirs)| {
            theirs.into_iter().for_each(|(device, ns)| *ours.entry(device).or_default() += ns);
            ours
        });
        at
    }

    /// Returns the paths. `ids` are those of the merged devices.
    pub fn finish(mut self, ids: &[String]) -> Vec<Node> {
        for (node, by_device) in self.nodes.iter_mut().zip(self.by_device) {
            let by_device = by_device.unwrap_or_default().into_iter();
            let named = by_device.filter_map(|(at, ns)| Some((ids.get(at)?.clone(), ns)));
            node.self_ns_by_device = named.collect();
        }
        self.nodes
    }
}

fn add_node(ours: &mut Node, theirs: &Node) {
    join(&mut ours.per_call, theirs.per_call, |one, other| {
        *one = mean(*one, ours.calls, other, theirs.calls);
    });
    add(&mut ours.recorded, theirs.recorded);
    ours.calls += theirs.calls;
    ours.self_ns += theirs.self_ns;
    ours.inclusive_ns += theirs.inclusive_ns;
    // The calls of different processes are sampled independently.
    let error = |one: Option<f64>, other: Option<f64>| Some(one?.hypot(other?));
    ours.self_error_ns = error(ours.self_error_ns, theirs.self_error_ns);
    ours.inclusive_error_ns = error(ours.inclusive_error_ns, theirs.inclusive_error_ns);
    if ours.source != theirs.source {
        // Events tell less about calls than CUPTI's records, so the sum counts as timed by events.
        ours.source = Source::Events;
    }
    ours.launch_bound |= theirs.launch_bound;
    ours.upper_bound |= theirs.upper_bound;
    ours.callers_unknown |= theirs.callers_unknown;
}

/// Returns the means over two sets of calls: all calls, because each recorded one counts for as many as it represents.
/// A figure is unknown if either set lacks it.
fn mean(one: PerCall, calls: f64, other: PerCall, other_calls: f64) -> PerCall {
    let all = calls + other_calls;
    let share = if all > 0.0 { other_calls / all } else { 0.0 };
    let of = |one: f64, other: f64| one + (other - one) * share;
    let of_both = |one: Option<f64>, other: Option<f64>| Some(of(one?, other?));
    value!(PerCall {
        busy_ns: of(one.busy_ns, other.busy_ns),
        span_ns: of(one.span_ns, other.span_ns),
        waited_ns: of_both(one.waited_ns, other.waited_ns),
        host_ns: of_both(one.host_ns, other.host_ns),
        kernels: of_both(one.kernels, other.kernels),
    })
}

#[cfg(test)]
mod tests;
