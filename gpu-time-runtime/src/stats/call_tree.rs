//! The call tree: annotated functions under their callers. The totals for all calls of the process
//! are estimated from the recorded calls.

pub(crate) mod by_events;
mod call_counts;
pub(crate) mod forest;
pub(crate) mod place;

use std::collections::{BTreeMap, HashMap};

use crate::stats::call_tree::by_events::TimedCalls;
use crate::stats::call_tree::place::{PathId, Place};
use crate::stats::kernels::CallFigures;
use crate::stats::total::{OpeningDraw, Total};
use crate::types::device::DeviceId;
use crate::types::sample::{Lost, Sample};
use gpu_time_report::{Node, PerCall, starved::SampleSum, value};

/// The maximum number of paths. The work of a function for which no path is left is attributed to the function
/// around it.
const MAX_PATHS: usize = 16_384;
/// The maximum number of functions along a path, as for [`Node::MAX_LEVELS`]. A function deeper inside takes the place
/// of the last one.
const MAX_LEVELS: usize = Node::MAX_LEVELS;

/// An annotated function, identified by the number of its site.
pub(crate) type SiteNumber = u32;

/// Stands for the helper threads of the function around it. No site has this number.
pub(crate) const HELPERS: SiteNumber = SiteNumber::MAX;

/// The paths from outermost functions to inner ones. A parent is added before its children.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTree {
    paths: Vec<Path>,
    known: HashMap<(Option<PathId>, SiteNumber), PathId>,
}

#[derive(Clone, Debug, Default)]
struct Path {
    function: SiteNumber,
    parent: Option<PathId>,
    /// The number of functions around it.
    level: usize,
    /// A recorded call was outermost, and may have had a caller that was not sampled.
    callers_unknown: bool,
    /// The calls that events timed.
    timed: Vec<TimedCalls>,
    /// The host times of some of the calls in `timed`.
    timed_on_host: SampleSum,
    /// The number of opened calls.
    recorded: u64,
    own: Total,
    /// `own`, split by device.
    own_by_device: BTreeMap<DeviceId, f64>,
    /// The time of this function's calls, including the functions inside them.
    inclusive: Total,
    /// Sums over the recorded calls. Each is weighted by the number of calls that it represents.
    sums: PerCall,
}

/// One recorded call of a function.
#[derive(Clone, Copy)]
pub(crate) struct RecordedCall<'a> {
    pub figures: &'a CallFigures<'a>,
    /// The time of helper threads that worked for it or for a function inside it. It is not in the figures.
    pub helped_ns: u64,
    pub host_ns: u64,
    /// The number of calls that it represents.
    pub weight: f64,
    pub draw: OpeningDraw,
}

impl CallTree {
    /// Returns the path of a function under a caller, or under the functions around that if there are too many of them.
    /// So each function keeps its own time and its calls, however deep it is nested. `None` if there are too many
    /// paths.
    pub fn path(&mut self, parent: Option<PathId>, function: SiteNumber) -> Option<PathId> {
        let on_last_level = |of: &&Path| of.level + 1 >= MAX_LEVELS;
        let last = parent.and_then(|parent| self.paths.get(parent.index())).filter(on_last_level);
        let parent = last.map_or(parent, |last| last.parent);
        if let Some(known) = self.known.get(&(parent, function)) {
            return Some(*known);
        }
        let around = parent.and_then(|parent| self.paths.get(parent.index()));
        let level = around.map_or(0, |around| around.level + 1);
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        let id = PathId::at(self.paths.len());
        self.paths.push(Path { function, parent, level, ..Path::default() });
        self.known.insert((parent, function), id);
        Some(id)
    }

    /// Records an opened call of a path.
    pub fn record(&mut self, path: PathId, call: RecordedCall<'_>) {
        let Some(path) = self.paths.get_mut(path.index()) else { return };
        let RecordedCall { figures, helped_ns, weight, draw, .. } = call;
        path.recorded += 1;
        path.inclusive.add(1.0, (figures.busy_ns + helped_ns) as f64, weight, draw);
        path.add_own(1.0, call);
        path.add_to_sums(call);
    }

    /// Adds the work of a function that has no path of its own to the path around it.
    pub fn record_inner(&mut self, around: PathId, call: RecordedCall<'_>) {
        if let Some(path) = self.paths.get_mut(around.index()) {
            path.add_own(0.0, call);
        }
    }

    /// Marks that the callers of an outermost function may not have been sampled.
    pub fn forget_callers(&mut self, path: PathId) {
        if let Some(path) = self.paths.get_mut(path.index()) {
            path.callers_unknown = true;
        }
    }

    /// Records the outcome of a call that events timed. If there are too many paths for the call's
    /// function to have one, `place.path` belongs to the function around it.
    pub fn record_timed(
        &mut self,
        place: Place,
        function: SiteNumber,
        device: DeviceId,
        outcome: Result<Sample, Lost>,
    ) {
        let Some(path) = self.paths.get_mut(place.path.index()) else { return };
        let is_own = path.function == function;
        let is_its = |of: &TimedCalls| of.is_of(device, place.around);
        let at = path.timed.iter().position(is_its).unwrap_or_else(|| {
            path.timed.push(TimedCalls::new(device, place.around));
            path.timed.len() - 1
        });
        path.timed[at].record(outcome, is_own);
    }

    /// Records the time that a call timed by events took on the host. It represents `weight` calls. Does
    /// nothing if there are too many paths for the call's function to have one.
    pub fn record_host_time(&mut self, path: PathId, function: SiteNumber, ns: u64, weight: f32) {
        if let Some(path) = self.paths.get_mut(path.index())
            && path.function == function
        {
            let samples = f64::from(weight);
            path.timed_on_host.add(SampleSum { samples, ns: samples * ns as f64 });
        }
    }
}

impl Path {
    fn add_own(&mut self, calls: f64, call: RecordedCall<'_>) {
        let RecordedCall { figures, weight, draw, .. } = call;
        self.own.add(calls, figures.own_ns.values().sum::<u64>() as f64, weight, draw);
        for (device, ns) in &figures.own_ns {
            *self.own_by_device.entry(*device).or_default() += weight * *ns as f64;
        }
    }

    fn add_to_sums(&mut self, RecordedCall { figures, host_ns, weight, .. }: RecordedCall<'_>) {
        let kernels = figures.works.iter().filter(|of| of.work.is_kernel).count();
        self.sums.busy_ns += weight * figures.busy_ns as f64;
        self.sums.span_ns += weight * figures.span_ns as f64;
        *self.sums.waited_ns.get_or_insert_default() += weight * figures.waited_ns as f64;
        *self.sums.host_ns.get_or_insert_default() += weight * host_ns as f64;
        *self.sums.kernels.get_or_insert_default() += weight * kernels as f64;
    }

    /// Returns the means of the recorded calls' figures.
    fn means(&self) -> PerCall {
        let mean = |sum| sum / self.inclusive.calls;
        value!(PerCall {
            busy_ns: mean(self.sums.busy_ns),
            span_ns: mean(self.sums.span_ns),
            waited_ns: self.sums.waited_ns.map(mean),
            host_ns: self.sums.host_ns.map(mean),
            kernels: self.sums.kernels.map(mean),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::call_tree::forest::Named;
    use gpu_time_report::Node;

    fn figures(busy_ns: u64, self_busy_ns: u64) -> CallFigures<'static> {
        let (span_ns, waited_ns) = (2 * busy_ns, 5);
        CallFigures {
            busy_ns,
            self_busy_ns,
            own_ns: BTreeMap::from([(DeviceId::Cuda(0), self_busy_ns)]),
            span_ns,
            waited_ns,
            streams: 1,
            ..CallFigures::default()
        }
    }

    fn record(tree: &mut CallTree, path: PathId, figures: &CallFigures<'_>, weight: f64) {
        let number = tree.paths[path.index()].recorded + 1;
        record_in(tree, path, figures, weight, OpeningDraw { number, weight });
    }

    fn record_in(
        tree: &mut CallTree,
        path: PathId,
        figures: &CallFigures<'_>,
        weight: f64,
        draw: OpeningDraw,
    ) {
        tree.record(path, RecordedCall { figures, helped_ns: 0, host_ns: 100, weight, draw });
    }

    fn report(tree: &CallTree) -> Vec<Node> {
        let named = |function: SiteNumber| Named {
            name: format!("f{function}"),
            site: Some(function as usize),
            calls: None,
            is_span: false,
            is_body: true,
            warms_up: false,
            is_counted: false,
        };
        let mut nodes = tree.report(named, |_| None, false);
        forest::add_errors_inside(&mut nodes);
        nodes
    }

    #[test]
    fn one_function_under_several_callers_has_several_paths() {
        let mut tree = CallTree::default();
        let [a, b] = [1, 2].map(|function| tree.path(None, function).unwrap());
        let paths = [None, Some(a), Some(b)].map(|parent| tree.path(parent, 3).unwrap());
        assert_eq!(tree.path(Some(a), 3), Some(paths[1]));
        for path in paths {
            record(&mut tree, path, &figures(10, 10), 1.0);
        }
        let nodes = report(&tree);
        let found: Vec<_> =
            nodes.iter().map(|node| (node.name.as_str(), node.parent, node.recorded)).collect();
        assert_eq!(
            found,
            [
                ("f1", None, 0),
                ("f2", None, 0),
                ("f3", None, 1),
                ("f3", Some(0), 1),
                ("f3", Some(1), 1)
            ]
        );
    }

    #[test]
    fn recursion_deepens_the_path() {
        let mut tree = CallTree::default();
        let outer = tree.path(None, 1).unwrap();
        let inner = tree.path(Some(outer), 1).unwrap();
        assert_ne!(outer, inner);
    }

    #[test]
    fn totals_of_weighted_calls_have_their_error() {
        let mut tree = CallTree::default();
        let path = tree.path(None, 1).unwrap();
        for _ in 0..4 {
            record(&mut tree, path, &figures(30, 10), 16.0);
        }
        let [node] = &report(&tree)[..] else { panic!() };
        assert_eq!((node.calls, node.recorded), (64.0, 4));
        assert_eq!(node.self_ns, 640.0);
        // Four draws of one in sixteen: each has a variance of 16 x 15 x 30².
        let error_ns = (4.0 * 16.0 * 15.0 * 900.0_f64).sqrt();
        assert!((tree.paths[path.index()].inclusive.standard_error_ns() - error_ns).abs() < 1e-9);
        // Too few to tell it.
        assert_eq!((node.inclusive_error_ns, node.self_error_ns), (None, None));
        let per_call = node.per_call.unwrap();
        assert_eq!(per_call.busy_ns, 30.0);
        assert_eq!((per_call.host_ns, per_call.waited_ns), (Some(100.0), Some(5.0)));
    }

    /// An outer call with a hundred calls inside is one draw: the error of what they take is that of the outer call.
    #[test]
    fn calls_recorded_together_are_one_draw() {
        let mut tree = CallTree::default();
        let outer = tree.path(None, 1).unwrap();
        let inner = tree.path(Some(outer), 2).unwrap();
        for number in 1..=4 {
            let draw = OpeningDraw { number, weight: 16.0 };
            record_in(&mut tree, outer, &figures(3_000, 0), 16.0, draw);
            for _ in 0..100 {
                record_in(&mut tree, inner, &figures(30, 30), 16.0, draw);
            }
        }
        let [outer, inner] =
            [outer, inner].map(|path| tree.paths[path.index()].inclusive.standard_error_ns());
        assert!((inner / outer - 1.0).abs() < 1e-9, "{inner} {outer}");
    }

    /// The first call is opened in any case, and sets up what the others use.
    #[test]
    fn mean_call_is_that_of_all_calls() {
        let mut tree = CallTree::default();
        let path = tree.path(None, 1).unwrap();
        record(&mut tree, path, &figures(10_000, 10_000), 1.0);
        record(&mut tree, path, &figures(10, 10), 99.0);
        let [node] = &report(&tree)[..] else { panic!() };
        let mean = node.per_call.unwrap();
        assert_eq!((mean.busy_ns, node.self_ns / node.calls), (109.9, 109.9));
    }

    #[test]
    fn all_calls_recorded_leave_no_error() {
        let mut tree = CallTree::default();
        let path = tree.path(None, 1).unwrap();
        record(&mut tree, path, &figures(30, 10), 1.0);
        let [node] = &report(&tree)[..] else { panic!() };
        assert_eq!((node.inclusive_error_ns, node.self_error_ns), (Some(0.0), Some(0.0)));
    }

    /// The first call of a function is opened in any case. Others on its path may have been left out.
    #[test]
    fn path_of_first_call_alone_has_no_error() {
        let mut tree = CallTree::default();
        let outer = tree.path(None, 1).unwrap();
        let inner = tree.path(Some(outer), 1).unwrap();
        record(&mut tree, inner, &figures(30, 10), 1.0);
        (0..9).for_each(|_| record(&mut tree, outer, &figures(30, 10), 16.0));
        let errors: Vec<_> = report(&tree).iter().map(|node| node.self_error_ns).collect();
        assert!(errors[0].is_some_and(|ns| ns > 0.0) && errors[1].is_none(), "{errors:?}");
    }

    /// The call around them is longer than a phase.
    #[test]
    fn caller_without_recorded_calls_has_the_errors_inside() {
        let mut tree = CallTree::default();
        let path = tree.path(None, 1).unwrap();
        for function in [2, 3] {
            let inner = tree.path(Some(path), function).unwrap();
            (0..9).for_each(|_| record(&mut tree, inner, &figures(30, 10), 16.0));
        }
        let [outer, one, other] = &report(&tree)[..] else { panic!() };
        let errors = [outer, one, other].map(|node| node.inclusive_error_ns.unwrap());
        assert!(errors[1] > 0.0 && errors[0] == errors[1] + errors[2], "{errors:?}");
        let rare = tree.path(Some(path), 4).unwrap();
        record(&mut tree, rare, &figures(30, 10), 16.0);
        assert_eq!(report(&tree)[0].inclusive_error_ns, None);
    }

    #[test]
    fn deep_recursion_has_a_bounded_path() {
        let mut tree = CallTree::default();
        let mut path = None;
        for _ in 0..MAX_LEVELS {
            path = tree.path(path, 1);
            assert!(path.is_some());
        }
        assert_eq!((tree.path(path, 1), tree.paths.len()), (path, MAX_LEVELS));
    }

    /// Two functions that call each other have equal times, as have their calls in sum.
    #[test]
    fn deep_recursion_keeps_functions_apart() {
        const CALLS: u64 = 200;
        let mut tree = CallTree::default();
        let mut path = None;
        for level in 0..CALLS {
            path = tree.path(path, (level % 2) as u32);
            record(&mut tree, path.unwrap(), &figures(10 * (CALLS - level), 10), 1.0);
        }
        let sums = |name: &str| {
            let nodes = report(&tree).into_iter().filter(|node| node.name == name);
            nodes.fold((0.0, 0, 0.0), |(own_ns, recorded, all_ns), node| {
                let ns = node.calls * node.per_call.unwrap().busy_ns;
                (own_ns + node.self_ns, recorded + node.recorded, (all_ns + ns).round())
            })
        };
        let all_ns =
            |first| (first..=CALLS).step_by(2).map(|calls| 10.0 * calls as f64).sum::<f64>();
        assert_eq!(sums("f0"), (1_000.0, 100, all_ns(2)));
        assert_eq!(sums("f1"), (1_000.0, 100, all_ns(1)));
    }

    #[test]
    fn paths_are_bounded_and_lose_no_work() {
        let mut tree = CallTree::default();
        let root = tree.path(None, 0).unwrap();
        for function in 1..MAX_PATHS as u32 {
            tree.path(Some(root), function).unwrap();
        }
        assert_eq!(tree.path(Some(root), MAX_PATHS as u32), None);
        let figures = &figures(10, 10);
        let draw = OpeningDraw { number: 1, weight: 2.0 };
        tree.record_inner(
            root,
            RecordedCall { figures, helped_ns: 0, host_ns: 0, weight: 2.0, draw },
        );
        assert_eq!(report(&tree)[0].self_ns, 20.0);
    }
}
