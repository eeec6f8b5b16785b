//! The call tree: the GPU's time by function and caller.

#[cfg(test)]
pub(crate) mod fixtures;
mod folded;
mod pprof;
pub(crate) mod selection;
pub(crate) mod shares;
pub(crate) mod view;
pub(crate) mod windows_only;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Process;
use crate::kinds::named;
use crate::largest::sort_by_largest;
use crate::launch_bound::is_launch_bound;

/// A function under its callers: one path of the call tree.
///
/// Functions appear once for each chain of annotated functions that called them on the same thread.
/// Totals are estimates for all calls of the process, from those that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// The function's name, `<helper threads>`, `<not annotated>`, or `<annotated, not timed>`.
    pub name: String,
    /// The index of the function in [`Snapshot::sites`](crate::Snapshot::sites).
    pub site: Option<usize>,
    /// The index of the caller in [`Snapshot::tree`](crate::Snapshot::tree), which is smaller than
    /// that of this path. `None` for the outermost function.
    pub parent: Option<usize>,
    /// The origin of the figures: `opened`, `events` or `windows`.
    pub source: Source,
    /// The number of recorded calls.
    pub recorded: u64,
    /// The estimated number of all calls that took this path.
    pub calls: f64,
    /// The estimated time, in nanoseconds, that the GPU worked for the function and the functions
    /// that it called.
    pub inclusive_ns: f64,
    /// The standard error of the inclusive time. It is 0 if every call was recorded and `None` if
    /// it is unknown, as for `<not annotated>` with fewer than five phases on a device.
    pub inclusive_error_ns: Option<f64>,
    /// The part of the inclusive time that is the function's own. While work of several functions
    /// runs at the same time, the time counts for the one whose work started first.
    pub self_ns: f64,
    /// The standard error of the self time, 0 or `None` as for the inclusive time.
    pub self_error_ns: Option<f64>,
    /// The self time on each device. Empty if it is unknown.
    pub self_ns_by_device: BTreeMap<String, f64>,
    /// The self time as a share of that of all paths, from 0 to 1. If the time of any path is an
    /// [upper bound](Self::upper_bound), the share may be too large or too small.
    pub share: f64,
    /// The means per call, in which each recorded call counts for as many as it represents. `None`
    /// for `<not annotated>`.
    pub per_call: Option<PerCall>,
    /// `true` if the GPU idled for 5 % of the calls' mean span or more because the host was still
    /// enqueueing their work. If the function's medians describe this path, they must show the
    /// same. In a merged report, the path must be launch-bound in one of the processes as well.
    /// That is enough if another one timed it by events, because the mean wait is unknown then.
    pub launch_bound: bool,
    /// `true` if the times are upper bounds: calls timed by events in which the GPU may have waited
    /// for the host took longer than the others, by more than 5 % of the time, or are so much
    /// shorter that they are other work and more than 5 % of the time, or these calls contain
    /// brackets other than those of callees.
    pub upper_bound: bool,
    /// `true` if sampling may have skipped callers, which are then missing from the path.
    pub callers_unknown: bool,
}

/// Means over the calls of a path. Each recorded call counts for as many as it represents.
///
/// Events measure only the time of a call, in which the GPU may have paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PerCall {
    /// The time during which at least one of the call's kernels, copies or memsets ran. For calls
    /// timed by events, this is the net time of the call.
    pub busy_ns: f64,
    /// The time from the start of the first kernel to the end of the last one. For calls timed by
    /// events, this is the net time of the call.
    pub span_ns: f64,
    /// The part of the span in which the GPU had nothing to do, because the host had not yet
    /// enqueued the work that ran next. `None` for calls timed by events.
    pub waited_ns: Option<f64>,
    /// The time that the call took on the host. For calls timed by events, this is estimated from a
    /// thread's first calls and some of the others; `None` for async functions.
    pub host_ns: Option<f64>,
    /// The number of kernels, without copies and memsets. `None` for calls timed by events.
    pub kernels: Option<f64>,
}

named! {
    /// The origin of a path's figures.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum Source {
        /// Recorded calls, which are exact for each of them, or the parts of longer calls that phases recorded.
        Opened = "opened",
        /// Calls timed by events.
        #[default]
        Events = "events",
        /// Phases, in which everything was recorded.
        Windows = "windows",
    }
}

impl Node {
    /// Returns a path without a name, calls or time.
    #[doc(hidden)]
    pub fn of(source: Source) -> Node {
        Node { source, inclusive_error_ns: Some(0.0), self_error_ns: Some(0.0), ..Node::default() }
    }

    /// The maximum number of functions along a path. Reports with more are refused.
    #[doc(hidden)]
    pub const MAX_LEVELS: usize = 64;

    /// The name of the work that no annotated function enqueued.
    pub const NOT_ANNOTATED: &str = "<not annotated>";

    /// The name of the work that threads without annotated functions enqueued for the function above.
    pub const HELPER_THREADS: &str = "<helper threads>";

    /// The name of the work of annotated functions in calls without a time, such as those in warm-up, if the functions
    /// have several paths.
    pub const NOT_TIMED: &str = "<annotated, not timed>";

    /// Returns what the path's own time counts for.
    #[doc(hidden)]
    pub fn owner(&self) -> Owner {
        match (self.source, self.site) {
            (Source::Windows, _) if self.name == Node::NOT_TIMED => Owner::NotTimed,
            (Source::Windows, _) => Owner::NotAnnotated,
            (_, Some(site)) => Owner::Function(site),
            (_, None) => Owner::HelperThreads,
        }
    }

    /// Returns the path's name. A report from elsewhere may have given any to work outside of functions.
    pub(crate) fn label(&self) -> &str {
        match self.owner() {
            Owner::Function(_) | Owner::HelperThreads => &self.name,
            Owner::NotTimed => Node::NOT_TIMED,
            Owner::NotAnnotated | Owner::Nobody => Node::NOT_ANNOTATED,
        }
    }
}

/// What GPU time counts for: a function, by its index in the report, or work outside of functions.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Function(usize),
    /// What threads without annotated functions enqueued for a function.
    HelperThreads,
    /// Annotated functions in calls without a time, which only phases found.
    NotTimed,
    /// No annotated function. Only phases found it.
    NotAnnotated,
    /// Nothing: the device was idle, or nothing is known.
    Nobody,
}

impl PerCall {
    fn is_launch_bound(&self) -> Option<bool> {
        Some(is_launch_bound(self.waited_ns?, self.span_ns))
    }
}

/// Completes a call tree: adds up the inclusive times, computes shares, and sorts paths so that each comes before its
/// callees and the longest callees come first.
///
/// The paths of a merged report are launch-bound only where those of a process were.
pub(crate) fn completed(mut nodes: Vec<Node>, process: &Process) -> Vec<Node> {
    add_up(&mut nodes);
    let total_ns: f64 = nodes.iter().map(|node| node.self_ns).sum();
    let is_merged = !process.merged.is_empty();
    // A merged report has no medians that could disagree, but those of its processes have.
    let may_be = |node: &Node| !is_merged || node.launch_bound;
    for node in &mut nodes {
        node.share = if total_ns > 0.0 { node.self_ns / total_ns } else { 0.0 };
        // The means of a path that one process opened and another timed by events lack the waits.
        let by_means = node.per_call.and_then(|per_call| per_call.is_launch_bound());
        node.launch_bound = by_means.unwrap_or(is_merged) && may_be(node);
    }
    sorted(nodes)
}

/// Computes the inclusive times: a path's own time plus those of the paths below it.
fn add_up(nodes: &mut [Node]) {
    nodes.iter_mut().for_each(|node| node.inclusive_ns = node.self_ns);
    for at in (0..nodes.len()).rev() {
        let Node { parent, inclusive_ns, .. } = nodes[at];
        if let Some(parent) = parent.filter(|parent| *parent < at) {
            nodes[parent].inclusive_ns += inclusive_ns;
        }
    }
}

/// Returns the indices of each node's children, longest inclusive time first, and those of the
/// outermost functions.
pub(crate) fn children(nodes: &[Node]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let (mut children, mut roots) = (vec![Vec::new(); nodes.len()], Vec::new());
    for (at, node) in nodes.iter().enumerate() {
        // A report from elsewhere may have invalid parents.
        match node.parent.filter(|parent| *parent < at) {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let longest_first = |list: &mut Vec<usize>| {
        sort_by_largest(list, |&at| nodes[at].inclusive_ns);
    };
    children.iter_mut().for_each(longest_first);
    longest_first(&mut roots);
    (children, roots)
}

/// Returns for each path whether it, or a path inside, has a property.
pub(crate) fn any_inside(nodes: &[Node], has: impl Fn(&Node) -> bool) -> Vec<bool> {
    let mut have: Vec<bool> = nodes.iter().map(has).collect();
    for at in (0..nodes.len()).rev() {
        if let Some(parent) = nodes[at].parent.filter(|parent| have[at] && *parent < at) {
            have[parent] = true;
        }
    }
    have
}

/// Sorts the nodes: each comes before its children, which are sorted by inclusive time, longest
/// first.
fn sorted(nodes: Vec<Node>) -> Vec<Node> {
    let order: Vec<usize> = depth_first(&nodes).map(|(at, _)| at).collect();
    let mut places = vec![0; nodes.len()];
    for (place, &at) in order.iter().enumerate() {
        places[at] = place;
    }
    let moved = |at: usize| {
        let mut node = nodes[at].clone();
        node.parent = node.parent.filter(|parent| *parent < at).map(|parent| places[parent]);
        node
    };
    order.into_iter().map(moved).collect()
}

/// Returns the index and the depth of each node, depth-first and each node before its children.
pub(crate) fn depth_first(nodes: &[Node]) -> impl Iterator<Item = (usize, usize)> {
    let (children, roots) = children(nodes);
    let mut waiting: Vec<_> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    std::iter::from_fn(move || {
        let (at, depth) = waiting.pop()?;
        waiting.extend(children[at].iter().rev().map(|&child| (child, depth + 1)));
        Some((at, depth))
    })
}

#[cfg(test)]
mod tests;
