//! Builds a report's call tree. Opened calls tell the times of an outermost function and of everything below it. If none
//! of its calls was opened, events do, and opened calls only those of the functions below that events did not time. So no
//! time is counted twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::stats::bias::Bias;
use crate::stats::call_tree::by_events::{self, EventTimes};
use crate::stats::call_tree::call_counts::{CallCounts, Correction};
use crate::stats::call_tree::place::PathId;
use crate::stats::call_tree::{CallTree, HELPERS, MAX_PATHS, Path, SiteNumber};
use crate::stats::total::{FEWEST, Total};
use crate::types::device::DeviceId;
use gpu_time_report::{Node, PerCall, Source, value};

/// A function, as reports show it.
pub(crate) struct Named {
    pub name: String,
    /// Its index in the report.
    pub site: Option<usize>,
    /// The number of calls that those in the tree stand for, if it is known.
    pub calls: Option<f64>,
    pub is_span: bool,
    /// Its brackets contain the functions that it calls.
    pub is_body: bool,
    /// Its first calls are not timed.
    pub warms_up: bool,
    /// Its calls are sampled by count, and not at random.
    pub is_counted: bool,
}

impl CallTree {
    /// Returns the nodes for the report. `named` describes a function, and `bias` returns the bias
    /// of a device. With `spans_are_sampled`, functions may have been called inside spans that were
    /// not recorded.
    pub fn report(
        &self,
        named: impl Fn(SiteNumber) -> Named,
        bias: impl Fn(DeviceId) -> Option<Bias>,
        spans_are_sampled: bool,
    ) -> Vec<Node> {
        let timed: Vec<_> = self.paths.iter().map(|path| &path.timed[..]).collect();
        let is_counted = |at: usize| named(self.paths[at].function).is_counted;
        let mut times = by_events::settle(&timed, bias, is_counted);
        let roots = self.roots();
        let mut are_opened = vec![false; self.paths.len()];
        let mut in_spans = HashSet::new();
        for (path, &root) in self.paths.iter().zip(&roots).filter(|(path, _)| path.is_opened()) {
            // If only events know an outermost function, they know what it called as well.
            are_opened[root] = self.paths[root].recorded > 0 || times[root].recorded == 0;
            if spans_are_sampled && named(self.paths[root].function).is_span {
                in_spans.insert(path.function);
            }
        }
        let is_opened = |at: usize, times: &[EventTimes]| {
            are_opened[roots[at]] || (times[at].recorded == 0 && self.paths[at].is_opened())
        };
        let mut is_shown: Vec<bool> = (0..self.paths.len())
            .map(|at| {
                if is_opened(at, &times) {
                    return self.paths[at].is_opened();
                }
                // Recorded spans also represent those that were not recorded, with the functions inside them.
                times[at].recorded > 0 && !in_spans.contains(&self.paths[roots[at]].function)
            })
            .collect();
        for at in (0..self.paths.len()).rev() {
            if let Some(parent) = self.paths[at].parent.filter(|_| is_shown[at]) {
                is_shown[parent.index()] = true;
            }
        }
        let partial = self.partial_callers(&times, &named);
        // If a caller was not timed, the path of a call inside it lacks that caller.
        let lacks_callers = |path: &Path| {
            let is_around = |caller| self.callers(path).any(|around| around.function == caller);
            partial.get(&path.function).is_some_and(|of| of.iter().any(|of| !is_around(*of)))
        };
        let mut counts = HashMap::<SiteNumber, CallCounts>::new();
        for (at, path) in self.paths.iter().enumerate().filter(|(at, _)| is_shown[*at]) {
            let count = counts.entry(path.function).or_default();
            if is_opened(at, &times) {
                count.add_opened(path.recorded, path.inclusive.calls)
            } else {
                times[at].stand_for(path.recorded);
                count.add_timed(&times[at])
            }
        }
        // Calls of functions without a path of their own are missing from the counts.
        let known = |of: &Named| of.calls.filter(|_| self.paths.len() < MAX_PATHS);
        let correction = |path: &Path| {
            // Helper threads stand for as many as the calls that they work for.
            let function = self.helped(path).map_or(path.function, |helped| helped.function);
            let named = named(function);
            Correction {
                is_counted: named.is_counted,
                ..counts[&function].correction(known(&named))
            }
        };
        for (at, path) in self.paths.iter().enumerate().filter(|(at, _)| is_shown[*at]) {
            let is_of_helpers = path.function == HELPERS;
            if !is_opened(at, &times) || are_opened[roots[at]] || is_of_helpers {
                continue;
            }
            let correction = correction(path);
            let error_ns = path.error_ns(&path.own, correction);
            let outer = |at: &usize| self.paths[*at].parent.map(PathId::index);
            let around = std::iter::successors(outer(&at), outer);
            let timed = around.filter(|outer| times[*outer].recorded > 0).collect::<Vec<_>>();
            let Some(outer) = timed.first().filter(|of| named(self.paths[**of].function).is_body)
            else {
                continue;
            };
            let excess_ns = times[*outer].take_off(&path.own_by_device, correction.scale, error_ns);
            timed.iter().for_each(|outer| times[*outer].excess_ns += excess_ns);
        }
        let mut places = vec![0; self.paths.len()];
        let mut nodes = Vec::new();
        for (at, path) in self.paths.iter().enumerate().filter(|(at, _)| is_shown[*at]) {
            places[at] = nodes.len();
            let Named { name, site, .. } = named(path.function);
            let node = if is_opened(at, &times) {
                path.opened_node(correction(path))
            } else {
                value!(Node {
                    callers_unknown: lacks_callers(path),
                    ..times[at].node(path.timed_on_host.mean_ns())
                })
            };
            let parent = path.parent.map(|parent| places[parent.index()]);
            nodes.push(value!(Node { name, site, parent, ..node }));
        }
        nodes
    }

    /// Returns the path of the function that helper threads work for. `None` unless the path stands for such threads.
    fn helped<'a>(&'a self, path: &'a Path) -> Option<&'a Path> {
        self.callers(path).next().filter(|_| path.function == HELPERS)
    }

    /// Returns, for each path, the index of the path of its outermost function.
    fn roots(&self) -> Vec<usize> {
        let mut roots: Vec<usize> = Vec::with_capacity(self.paths.len());
        for (at, path) in self.paths.iter().enumerate() {
            roots.push(path.parent.map_or(at, |parent| roots[parent.index()]));
        }
        roots
    }

    /// Returns, for each timed function, those of its callers whose calls are not all timed.
    fn partial_callers(
        &self,
        times: &[EventTimes],
        named: &impl Fn(SiteNumber) -> Named,
    ) -> HashMap<SiteNumber, HashSet<SiteNumber>> {
        let of_sampled = self.paths.iter().zip(times).filter(|(_, times)| times.is_sampled());
        let sampled: HashSet<_> = of_sampled.map(|(path, _)| path.function).collect();
        let is_partial = |of: &SiteNumber| sampled.contains(of) || named(*of).warms_up;
        let mut callers: HashMap<_, HashSet<_>> = HashMap::new();
        let timed = self.paths.iter().zip(times).filter(|(_, times)| times.recorded > 0);
        for (path, _) in timed {
            let all = self.callers(path).map(|caller| caller.function);
            let partial = all.filter(is_partial);
            callers.entry(path.function).or_default().extend(partial);
        }
        callers
    }

    /// Returns the callers of a path, the innermost first.
    fn callers<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let caller = |path: &&'a Path| self.paths.get(path.parent?.index());
        std::iter::successors(Some(path), caller).skip(1)
    }
}

impl Path {
    /// Returns `true` if opened calls contributed to this path.
    fn is_opened(&self) -> bool {
        self.recorded > 0 || self.own.ns > 0.0
    }

    /// Returns the error of a total of this path's opened calls, before it is corrected. `None` if they are too few, or were
    /// not chosen at random.
    fn error_ns(&self, total: &Total, correction: Correction) -> Option<f64> {
        match correction {
            Correction { is_sampled: false, .. } => Some(0.0),
            Correction { is_counted: true, .. } => None,
            Correction { is_count_known, .. } => total.known_error_ns(is_count_known),
        }
    }

    fn opened_node(&self, correction: Correction) -> Node {
        let per_call = (self.recorded > 0).then(|| self.means());
        // What helper threads do besides is unknown.
        let on_host = |mean: PerCall| match self.function {
            HELPERS => value!(PerCall { waited_ns: None, host_ns: None, ..mean }),
            _ => mean,
        };
        let per_call = per_call.map(on_host);
        correction.applied(value!(Node {
            recorded: self.recorded,
            calls: self.inclusive.calls,
            inclusive_error_ns: self.error_ns(&self.inclusive, correction),
            self_ns: self.own.ns,
            self_error_ns: self.error_ns(&self.own, correction),
            self_ns_by_device: by_name(&self.own_by_device),
            per_call,
            callers_unknown: self.callers_unknown,
            ..Node::of(Source::Opened)
        }))
    }
}

impl EventTimes {
    /// Lets the calls that events timed stand for others that were recorded.
    fn stand_for(&mut self, recorded: u64) {
        let scale = 1.0 + recorded as f64 / self.calls;
        if !scale.is_finite() {
            return;
        }
        self.recorded += recorded;
        let times = [&mut self.calls, &mut self.net_ns].into_iter();
        times.chain(self.own_by_device.values_mut()).for_each(|ns| *ns *= scale);
        for variance in [&mut self.net_variance, &mut self.own_variance] {
            *variance *= scale.powi(2);
        }
    }

    /// Takes the time of recorded calls inside the brackets off the function's own. That time is multiplied by `scale`, and
    /// has this error, if it is known, before. Returns by how much it is longer than the brackets.
    fn take_off(
        &mut self,
        own_by_device: &BTreeMap<DeviceId, f64>,
        scale: f64,
        error_ns: Option<f64>,
    ) -> f64 {
        self.taken_error_ns += error_ns.map_or(f64::INFINITY, |error_ns| scale * error_ns);
        let mut excess_ns = 0.0;
        for (device, ns) in own_by_device {
            let own = self.own_by_device.entry(*device).or_default();
            let taken = (ns * scale).min(*own);
            *own -= taken;
            excess_ns += ns * scale - taken;
        }
        excess_ns
    }

    /// Returns the node of a path with these times. `host_ns` is the mean time of a call on the host, if known.
    fn node(&self, host_ns: Option<f64>) -> Node {
        let net_ns = self.net_ns / self.calls;
        let is_error_known = !self.is_sampled() || self.recorded as f64 >= FEWEST;
        let known = |error_ns: f64| {
            Some(error_ns).filter(|error_ns| is_error_known && error_ns.is_finite())
        };
        value!(Node {
            recorded: self.recorded,
            calls: self.calls,
            inclusive_error_ns: known(self.net_variance.sqrt() + self.excess_ns),
            self_ns: self.own_ns(),
            self_error_ns: known(self.own_variance.sqrt().hypot(self.taken_error_ns)),
            self_ns_by_device: by_name(&self.own_by_device),
            per_call: (self.recorded > 0).then(|| value!(PerCall {
                busy_ns: net_ns,
                span_ns: net_ns,
                host_ns,
                ..PerCall::default()
            })),
            upper_bound: self.is_bound,
            ..Node::of(Source::Events)
        })
    }
}

/// Adds the errors of what is inside to those of callers of which no call was timed or recorded, such as an annotated `main`
/// that is longer than a phase. They have no error of their own. Calls of one phase are alike, so the errors are not
/// independent.
pub(crate) fn add_errors_inside(nodes: &mut [Node]) {
    for at in (0..nodes.len()).rev() {
        let error_ns = nodes[at].inclusive_error_ns;
        let parent = nodes[at].parent.and_then(|parent| nodes.get_mut(parent));
        if let Some(parent) = parent.filter(|of| of.recorded == 0) {
            parent.inclusive_error_ns = parent.inclusive_error_ns.zip(error_ns).map(|(a, b)| a + b);
        }
    }
}

/// Returns the times with the devices' names as keys. Times of 0 are omitted.
fn by_name(times: &BTreeMap<DeviceId, f64>) -> BTreeMap<String, f64> {
    let times = times.iter().filter(|(_, ns)| **ns > 0.0);
    times.map(|(device, ns)| (device.to_string(), *ns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::call_tree::RecordedCall;
    use crate::stats::call_tree::place::Place;
    use crate::stats::kernels::CallFigures;
    use crate::stats::total::OpeningDraw;
    use crate::types::sample::{Sample, SampleFlags};

    const SPAN: SiteNumber = 100;
    const WARMED: SiteNumber = 200;

    fn opened(tree: &mut CallTree, path: PathId, ns: u64) {
        opened_with(tree, path, ns, OpeningDraw { number: 0, weight: 1.0 });
    }

    fn opened_with(tree: &mut CallTree, path: PathId, ns: u64, draw: OpeningDraw) {
        let (busy_ns, self_busy_ns, span_ns) = (ns, ns, ns);
        let own_ns = BTreeMap::from([(DeviceId::Cuda(0), ns)]);
        let figures = &CallFigures {
            busy_ns,
            self_busy_ns,
            own_ns,
            span_ns,
            streams: 1,
            ..CallFigures::default()
        };
        tree.record(
            path,
            RecordedCall { figures, helped_ns: 0, host_ns: 1, weight: draw.weight, draw },
        );
    }

    fn timed(tree: &mut CallTree, path: PathId, ns: f64, weight: f32) {
        let flags = SampleFlags { fed: true, ..SampleFlags::default() };
        let sample = Sample::new(ns).unwrap().flagged(flags).weighted(weight);
        let function = tree.paths[path.index()].function;
        let place = Place { path, around: None };
        tree.record_timed(place, function, DeviceId::Cuda(0), Ok(sample));
    }

    fn report(tree: &CallTree, spans_are_sampled: bool) -> Vec<Node> {
        let named = |function: SiteNumber| Named {
            name: function.to_string(),
            site: Some(function as usize),
            calls: None,
            is_span: function == SPAN,
            is_body: true,
            warms_up: function == WARMED,
            is_counted: false,
        };
        tree.report(named, |_| None, spans_are_sampled)
    }

    fn shown(nodes: &[Node]) -> Vec<(&str, Option<usize>, &str, f64)> {
        nodes.iter().map(|n| (n.name.as_str(), n.parent, n.source.name(), n.self_ns)).collect()
    }

    #[test]
    fn opened_calls_replace_events_below_their_root() {
        let mut tree = CallTree::default();
        let root = tree.path(None, 1).unwrap();
        let inner = tree.path(Some(root), 2).unwrap();
        let alone = tree.path(None, 2).unwrap();
        timed(&mut tree, root, 50.0, 1.0);
        timed(&mut tree, inner, 30.0, 1.0);
        timed(&mut tree, alone, 10.0, 1.0);
        let by_events = [("1", None, "events", 50.0), ("2", Some(0), "events", 30.0)];
        let of_alone = ("2", None, "events", 10.0);
        assert_eq!(shown(&report(&tree, false)), [by_events[0], by_events[1], of_alone]);
        opened(&mut tree, root, 70);
        assert_eq!(shown(&report(&tree, false)), [("1", None, "opened", 70.0), of_alone]);
        // The caller was not opened itself.
        let mut tree = CallTree::default();
        let around = tree.path(None, 1).unwrap();
        let inner = tree.path(Some(around), 2).unwrap();
        timed(&mut tree, inner, 30.0, 1.0);
        opened(&mut tree, inner, 20);
        let inner = ("2", Some(0), "opened", 20.0);
        assert_eq!(shown(&report(&tree, false)), [("1", None, "opened", 0.0), inner]);
    }

    /// The first call of a function without a stream is opened in any case, here inside calls that events time.
    #[test]
    fn events_tell_a_root_of_which_no_call_was_recorded() {
        let mut tree = CallTree::default();
        let root = tree.path(None, 1).unwrap();
        let [inner, both] = [2, 3].map(|function| tree.path(Some(root), function).unwrap());
        for _ in 0..40 {
            timed(&mut tree, root, 100.0, 1.0);
        }
        opened(&mut tree, inner, 30);
        // Of these, one was recorded, and is not among those that events timed.
        for _ in 0..39 {
            tree.record_timed(
                Place { path: both, around: Some(root) },
                3,
                DeviceId::Cuda(0),
                Ok(Sample::new(20.0).unwrap()),
            );
        }
        opened(&mut tree, both, 20);
        let named = |function: SiteNumber| Named {
            name: function.to_string(),
            site: Some(function as usize),
            calls: Some(40.0),
            is_span: false,
            is_body: true,
            warms_up: false,
            is_counted: false,
        };
        let nodes = tree.report(named, |_| None, false);
        let calls: Vec<_> = nodes.iter().map(|node| node.calls.round()).collect();
        assert_eq!(calls, [40.0; 3]);
        let found = nodes.iter().map(|node| (node.source.name(), node.self_ns.round()));
        let own_ns = 40.0 * 100.0 - 40.0 * 30.0 - 39.0 * 20.0;
        assert_eq!(
            found.collect::<Vec<_>>(),
            [("events", own_ns), ("opened", 1_200.0), ("events", 800.0)]
        );
    }

    /// Events time one call of a function, and records tell of some calls inside, of 50 ns, one in ten.
    #[test]
    fn own_time_has_the_error_of_recorded_calls_inside() {
        let nodes = |recorded: u64, timed_ns: f64| {
            let mut tree = CallTree::default();
            let root = tree.path(None, 1).unwrap();
            let caller = tree.path(Some(root), 2).unwrap();
            let body = tree.path(Some(caller), 3).unwrap();
            let inner = tree.path(Some(body), 4).unwrap();
            timed(&mut tree, root, 60_000.0, 1.0);
            timed(&mut tree, body, timed_ns, 1.0);
            for number in 1..=recorded {
                opened_with(&mut tree, inner, 50, OpeningDraw { number, weight: 10.0 });
            }
            let mut nodes = report(&tree, false);
            add_errors_inside(&mut nodes);
            <[Node; 4]>::try_from(nodes).unwrap()
        };
        let are_inclusive_errors =
            |nodes: [Node; 3], ns| nodes.iter().all(|node| node.inclusive_error_ns == Some(ns));
        let [root, caller, body, inner] = nodes(20, 50_000.0);
        assert!(inner.self_error_ns.is_some_and(|ns| ns > 0.0));
        assert_eq!((body.self_ns, body.self_error_ns), (40_000.0, inner.self_error_ns));
        assert!(are_inclusive_errors([root, caller, body], 0.0));
        // Too few to tell.
        let [root, caller, body, _] = nodes(1, 50_000.0);
        assert_eq!((body.self_ns, body.self_error_ns), (49_500.0, None));
        assert!(are_inclusive_errors([root, caller, body], 0.0));
        // They seem to take longer than what is around them.
        let [root, caller, body, _] = nodes(20, 9_000.0);
        assert_eq!(body.self_ns, 0.0);
        assert!(are_inclusive_errors([root, caller, body], 1_000.0));
    }

    /// Two recorded functions inside, whose calls are of the same phases.
    #[test]
    fn errors_of_recorded_calls_inside_add_up() {
        let mut tree = CallTree::default();
        let body = tree.path(None, 1).unwrap();
        let inside = [2, 3].map(|function| tree.path(Some(body), function).unwrap());
        timed(&mut tree, body, 50_000.0, 1.0);
        for number in 1..=20 {
            let draw = OpeningDraw { number, weight: 10.0 };
            inside.into_iter().for_each(|path| opened_with(&mut tree, path, 50, draw));
        }
        let [body, one, other] = <[Node; 3]>::try_from(report(&tree, false)).unwrap();
        let errors = one.self_error_ns.zip(other.self_error_ns);
        assert_eq!(body.self_error_ns, errors.map(|(one, other)| one + other));
    }

    #[test]
    fn recorded_spans_stand_for_functions_in_the_others() {
        let mut tree = CallTree::default();
        let span = tree.path(None, SPAN).unwrap();
        let inside = tree.path(Some(span), 1).unwrap();
        let outside = tree.path(None, 1).unwrap();
        opened(&mut tree, inside, 20);
        timed(&mut tree, outside, 15.0, 1.0);
        assert_eq!(report(&tree, false).len(), 3);
        let all = report(&tree, true);
        assert_eq!(
            all.iter().map(|node| node.source.name()).collect::<Vec<_>>(),
            ["opened", "opened"]
        );
    }

    /// A function is recorded 20 times under each of two callers, and is known to have been called 40 times.
    #[test]
    fn known_numbers_of_calls_correct_totals() {
        let mut tree = CallTree::default();
        let [one, two] = [1, 2].map(|caller| tree.path(None, caller).unwrap());
        let [in_one, in_two] = [one, two].map(|caller| tree.path(Some(caller), 3).unwrap());
        for number in 1..=20 {
            for path in [one, in_one, two, in_two] {
                opened_with(&mut tree, path, 10, OpeningDraw { number, weight: 10.0 });
            }
        }
        let of = |calls: Option<f64>| {
            let named = |function: SiteNumber| Named {
                name: function.to_string(),
                site: Some(function as usize),
                calls: calls.filter(|_| function == 3),
                is_span: false,
                is_body: true,
                warms_up: false,
                is_counted: false,
            };
            let nodes = tree.report(named, |_| None, false);
            nodes.iter().map(|node| (node.calls, node.self_ns)).collect::<Vec<_>>()
        };
        assert_eq!(of(None), [(200.0, 2_000.0); 4]);
        let [known, corrected] = [(200.0, 2_000.0), (20.0, 200.0)];
        assert_eq!(of(Some(40.0)), [known, known, corrected, corrected]);
    }

    /// A function is recorded 20 times, with helper threads in each call, and is known to have been called 40 times.
    #[test]
    fn helper_threads_stand_for_as_many_calls_as_their_function() {
        let mut tree = CallTree::default();
        let function = tree.path(None, 3).unwrap();
        let helpers = tree.path(Some(function), HELPERS).unwrap();
        for number in 1..=20 {
            for path in [function, helpers] {
                opened_with(&mut tree, path, 10, OpeningDraw { number, weight: 10.0 });
            }
        }
        for (known, corrected) in [(None, (200.0, 2_000.0)), (Some(40.0), (40.0, 400.0))] {
            let named = |function: SiteNumber| Named {
                name: function.to_string(),
                site: None,
                calls: known.filter(|_| function == 3),
                is_span: false,
                is_body: true,
                warms_up: false,
                is_counted: false,
            };
            let nodes = tree.report(named, |_| None, false);
            let found: Vec<_> = nodes.iter().map(|node| (node.calls, node.self_ns)).collect();
            assert_eq!(found, [corrected; 2]);
            let per_call = nodes.iter().map(|node| node.per_call.unwrap().host_ns);
            assert_eq!(per_call.collect::<Vec<_>>(), [Some(1.0), None]);
            assert_eq!(nodes[0].self_error_ns, nodes[1].self_error_ns);
        }
    }

    #[test]
    fn paths_without_calls_are_left_out() {
        let mut tree = CallTree::default();
        let idle = tree.path(None, 1).unwrap();
        tree.path(Some(idle), 2).unwrap();
        let around = tree.path(None, 3).unwrap();
        let inner = tree.path(Some(around), 4).unwrap();
        timed(&mut tree, inner, 30.0, 1.0);
        let nodes = report(&tree, false);
        assert_eq!(shown(&nodes), [("3", None, "events", 0.0), ("4", Some(0), "events", 30.0)]);
        assert!(nodes[0].per_call.is_none());
    }

    #[test]
    fn callers_that_are_sampled_may_be_missing() {
        for (function, weight, is_missing) in [(1, 1.0, false), (1, 2.0, true), (WARMED, 1.0, true)]
        {
            let mut tree = CallTree::default();
            let caller = tree.path(None, function).unwrap();
            let inner = tree.path(Some(caller), 2).unwrap();
            let alone = tree.path(None, 2).unwrap();
            let stranger = tree.path(None, 3).unwrap();
            timed(&mut tree, caller, 50.0, weight);
            for path in [inner, alone, stranger] {
                timed(&mut tree, path, 10.0, 1.0);
            }
            let nodes = report(&tree, false);
            let unknown: Vec<_> = nodes.iter().map(|node| node.callers_unknown).collect();
            assert_eq!(unknown, [false, false, is_missing, false]);
        }
    }

    #[test]
    fn calls_without_path_belong_to_outer_one() {
        let mut tree = CallTree::default();
        let outer = tree.path(None, 1).unwrap();
        let sample = |ns| Ok(Sample::new(ns).unwrap());
        let inside = Place { path: outer, around: Some(outer) };
        tree.record_timed(inside, 2, DeviceId::Cuda(0), sample(300.0));
        let place = Place { path: outer, around: None };
        tree.record_timed(place, 1, DeviceId::Cuda(0), sample(1_000.0));
        let [node] = &report(&tree, false)[..] else { panic!() };
        assert_eq!((node.recorded, node.calls, node.self_ns), (1, 1.0, 1_000.0));
    }

    #[test]
    fn means_are_of_net_times() {
        let mut tree = CallTree::default();
        let path = tree.path(None, 1).unwrap();
        timed(&mut tree, path, 40.0, 3.0);
        timed(&mut tree, path, 80.0, 1.0);
        let [node] = &report(&tree, false)[..] else { panic!() };
        let per_call = node.per_call.unwrap();
        assert_eq!((node.calls, node.recorded, per_call.busy_ns), (4.0, 2, 50.0));
        assert_eq!((per_call.host_ns, per_call.kernels, per_call.waited_ns), (None, None, None));
        // The second one represents three calls.
        for (ns, weight) in [(500, 1.0), (100, 3.0)] {
            tree.record_host_time(path, 1, ns, weight);
        }
        // A call of a function without a path of its own.
        tree.record_host_time(path, 2, 900, 1.0);
        assert_eq!(report(&tree, false)[0].per_call.unwrap().host_ns, Some(200.0));
    }
}
