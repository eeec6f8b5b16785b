//! Tests for work that a thread of a library enqueues for a function.

use crate::harness::report::{Coverage, Node};
use crate::harness::tree::{assert_time, paths};
use crate::harness::{Run, scenario};

const CALLS: f64 = 20.0;
/// The duration of the kernels of a function.
const OWN: f64 = 10_000.0;
/// The duration of those of the worker.
const BY_WORKER: f64 = 20_000.0;

/// Returns what phases found. The whole run is one.
#[track_caller]
fn coverage(run: &Run) -> &Coverage {
    run.report().devices[0].coverage.as_ref().expect("the run was recorded")
}

/// Asserts that a path has this time of its own, in kernels of this duration in each of its calls.
#[track_caller]
fn assert_own(node: &Node, calls: f64, kernels: f64, ns: f64) {
    assert_eq!((node.source.as_str(), node.calls), ("opened", calls), "{node:?}");
    assert_time(node.self_ns, calls * kernels * ns, calls * kernels);
}

/// Asserts that the path of helper threads has this many kernels in each of the calls that they worked for.
#[track_caller]
fn assert_helpers(node: &Node, calls: f64, kernels: f64) {
    assert_own(node, calls, kernels, BY_WORKER);
    let per_call = node.per_call.as_ref().unwrap();
    assert_eq!((per_call.kernels, per_call.host_ns), (Some(kernels), None), "{node:?}");
    assert!(!node.launch_bound, "{node:?}");
}

/// Asserts that all work belongs to functions.
#[track_caller]
fn assert_all_annotated(run: &Run) {
    let coverage = coverage(run);
    assert!(coverage.attributed == coverage.busy && coverage.busy > 0.0, "{coverage:?}");
    assert!(coverage.outside().is_empty(), "{coverage:?}");
    let tree = &run.report().tree;
    assert!(!tree.iter().any(|node| node.source == "windows"), "{tree:?}");
}

/// Asserts that the work of the worker, this many kernels, belongs to no function.
#[track_caller]
fn assert_not_annotated(run: &Run, kernels: u64) {
    let tree = &run.report().tree;
    assert!(!tree.iter().any(|node| node.name == "<helper threads>"), "{tree:?}");
    let [outside] = &coverage(run).outside()[..] else { panic!("{:?}", coverage(run)) };
    // The phase may begin during the first call.
    let first = kernels / CALLS as u64;
    assert!((kernels - first..=kernels).contains(&outside.count), "{kernels}: {outside:?}");
    let count = outside.count as f64;
    assert_time(outside.total_ns, count * BY_WORKER, count);
    assert!(tree.iter().any(|node| node.name == "<not annotated>"), "{tree:?}");
}

/// Recorded calls stand for those that are not, with the work of their helper threads. It must not count again.
#[test]
fn work_for_a_call_that_began_before_the_phase_is_annotated() {
    let run = scenario("helpers/before_phase", &[]).with_cupti().run();
    let coverage = coverage(&run);
    assert!(coverage.attributed == coverage.busy && coverage.busy > 0.0, "{coverage:?}");
    assert!(coverage.outside().is_empty() && coverage.not_timed == 0.0, "{coverage:?}");
}

#[test]
fn work_of_a_helper_thread_is_below_its_caller() {
    let run = scenario("helpers/one_caller", &[]).recorded().env("GPU_TIME_VIEW", "tree").run();
    let paths = paths(&run);
    let (caller, helpers) = (paths["hands_over"], paths["hands_over/<helper threads>"]);
    assert_eq!(paths.len(), 2, "{:?}", paths.keys());
    assert_own(caller, CALLS, 2.0, OWN);
    assert_helpers(helpers, CALLS, 3.0);
    assert!((caller.inclusive_ns - caller.self_ns - helpers.self_ns).abs() < 1.0, "{caller:?}");
    assert_eq!((caller.inclusive_error_ns, helpers.self_error_ns), (0.0, 0.0));
    assert!((helpers.share / caller.share - 3.0).abs() < 0.5, "{helpers:?} {caller:?}");
    assert_all_annotated(&run);
    // The row has the function's own kernels.
    let row = run.row("helpers::hands_over");
    assert_eq!((row.opened, row.all_lost()), (20, 0), "{row:?}");
    assert_eq!(row.kernels.kernels_per_call, Some(2.0));
    assert_time(row.kernels.busy_ns.as_ref().unwrap().sum, CALLS * 2.0 * OWN, CALLS * 2.0);
    assert!(run.stderr.contains("  <helper threads>"), "{}", run.stderr);
}

#[test]
fn work_of_a_helper_thread_of_two_callers_is_not_annotated() {
    let run = scenario("helpers/two_callers", &[]).recorded().run();
    assert_own(paths(&run)["shares"], 2.0 * CALLS, 1.0, OWN);
    assert_not_annotated(&run, 3 * 20);
}

#[test]
fn work_after_the_call_is_not_annotated() {
    let run = scenario("helpers/after_call", &[]).recorded().run();
    let paths = paths(&run);
    assert_own(paths["returns_early"], CALLS, 1.0, OWN);
    assert_own(paths["is_suspended"], CALLS, 2.0, OWN);
    assert_not_annotated(&run, 5 * 20);
}

#[test]
fn functions_may_exclude_helper_threads() {
    let run = scenario("helpers/excluded", &[]).recorded().run();
    assert_own(paths(&run)["excludes/is_inside"], CALLS, 1.0, OWN);
    assert_not_annotated(&run, 4 * 20);
}

#[test]
fn helper_threads_stand_for_as_many_calls_as_their_caller() {
    const CALLS: f64 = 1_500.0;
    let run = scenario("helpers/in_phases", &[]).with_cupti().env("GPU_TIME_RECORD", "5ms/20ms");
    let run = run.untraced().run();
    let paths = paths(&run);
    let (caller, helpers) = (paths["on_stream"], paths["on_stream/<helper threads>"]);
    for (node, kernels, ns) in [(caller, 2.0, OWN), (helpers, 3.0, BY_WORKER)] {
        assert!((node.recorded as f64) < 0.7 * CALLS && node.recorded > 20, "{node:?}");
        assert!((node.calls - CALLS).abs() < 1e-6, "{node:?}");
        assert_time(node.self_ns, CALLS * kernels * ns, CALLS * kernels);
    }
    assert!((caller.inclusive_ns - caller.self_ns - helpers.self_ns).abs() < 1.0, "{caller:?}");
}

#[test]
fn helper_threads_are_below_the_innermost_function() {
    let run = scenario("helpers/inside", &[]).recorded().run();
    let paths = paths(&run);
    assert_own(paths["outer"], CALLS, 1.0, OWN);
    assert_own(paths["outer/inner"], CALLS, 1.0, OWN);
    assert_helpers(paths["outer/<helper threads>"], CALLS, 3.0);
    assert_helpers(paths["outer/inner/<helper threads>"], CALLS, 4.0);
    let outer = paths["outer"];
    assert_time(outer.inclusive_ns, CALLS * (2.0 * OWN + 7.0 * BY_WORKER), CALLS * 9.0);
    assert_eq!(paths.len(), 4, "{:?}", paths.keys());
    assert_all_annotated(&run);
}

#[test]
fn parts_of_a_long_call_have_their_helper_threads() {
    let run = scenario("helpers/long", &[]).recorded().untraced().run();
    let paths = paths(&run);
    let inner = paths["calls_often/hands_over_one/<helper threads>"];
    assert_eq!((inner.recorded, inner.calls), (6_000, 6_000.0));
    assert_time(inner.self_ns, 6_000.0 * 1_000.0, 6_000.0);
    let outer = paths["calls_often/<helper threads>"];
    assert_eq!(outer.recorded, 0);
    assert_time(outer.self_ns, 5.0 * BY_WORKER, 5.0);
    assert_eq!(run.row("helpers::calls_often").lost("long"), 1);
    assert!(coverage(&run).outside().is_empty(), "{:?}", coverage(&run));
}

#[test]
fn spans_have_helper_threads() {
    let run = scenario("helpers/of_span", &[]).recorded().keeps_counting().run();
    let paths = paths(&run);
    assert_own(paths["request"], CALLS, 1.0, OWN);
    assert_helpers(paths["request/<helper threads>"], CALLS, 3.0);
    assert_all_annotated(&run);
}

/// The worker may work for the span.
#[test]
fn span_that_is_not_recorded_counts_as_a_caller() {
    let run = scenario("helpers/beside_span", &[]).recorded().keeps_counting().run();
    assert_own(paths(&run)["shares"], CALLS, 1.0, OWN);
    assert_not_annotated(&run, 3 * 20);
}

#[test]
fn threads_of_a_pool_are_helpers() {
    let run = scenario("helpers/rust_threads", &[]).recorded().run();
    let paths = paths(&run);
    assert_own(paths["in_pool"], CALLS, 1.0, OWN);
    assert_helpers(paths["in_pool/<helper threads>"], CALLS, 5.0);
    assert_all_annotated(&run);
}

#[test]
fn function_that_only_starts_threads_says_who_launched() {
    let run = scenario("helpers/starts_threads", &[]).recorded().run();
    let note =
        "helpers::waits_for_threads: launches nothing on its own thread: what other threads launch";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    assert!(!run.stderr.contains("helpers::on_thread: launches nothing"), "{}", run.stderr);
}
