//! Tests for the call tree: functions under their callers.

use std::collections::BTreeMap;

use crate::harness::report::Node;
use crate::harness::tree::{assert_time, paths};
use crate::harness::{is_real, scenario};

#[test]
fn every_caller_has_its_own_path() {
    let folded = tempfile::NamedTempFile::new().unwrap();
    let target = format!("table,folded:{}", folded.path().display());
    let run = scenario("tree/callers", &["30"]).with_cupti().target(&target).run();
    let paths = paths(&run);
    for (path, calls, kernels, self_kernels) in [
        ("left", 30.0, 3.0, 1.0),
        ("left/shared", 30.0, 2.0, 2.0),
        ("right", 30.0, 4.0, 0.0),
        ("right/shared", 60.0, 2.0, 2.0),
        ("shared", 30.0, 2.0, 2.0),
        ("countdown", 30.0, 3.0, 1.0),
        ("countdown/countdown", 30.0, 2.0, 1.0),
        ("countdown/countdown/countdown", 30.0, 1.0, 1.0),
    ] {
        let node = paths[path];
        assert_eq!((node.source.as_str(), node.calls), ("opened", calls), "{path}");
        assert_eq!((node.inclusive_error_ns, node.self_error_ns), (0.0, 0.0), "{path}");
        assert_time(node.inclusive_ns, calls * kernels * 10_000.0, calls * kernels);
        assert_time(node.self_ns, calls * self_kernels * 10_000.0, calls * self_kernels);
        assert!(!node.callers_unknown);
    }
    assert_eq!(paths.len(), 8);
    // The folded stacks have the same times.
    let folded = std::fs::read_to_string(folded.path()).unwrap();
    let total: f64 =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum();
    let own: f64 = paths.values().map(|node| node.self_ns).sum();
    assert!((total - own).abs() < 10.0, "{total} of {own}:\n{folded}");
    let deepest = folded.lines().filter(|line| line.matches("countdown").count() == 3);
    assert_eq!(deepest.count(), 1, "{folded}");
}

#[test]
fn totals_in_phases_are_right_within_their_errors() {
    let run = scenario("tree/shares", &[]).in_phases().untraced().run();
    let paths = paths(&run);
    let inside: f64 = (0..1_500).map(|n| 10_000.0 * (1 + n % 7) as f64).sum();
    for (path, own) in [
        ("sampled", 1_500.0 * 10_000.0),
        ("sampled/sampled_inside", inside),
        ("sampled_around", 1_500.0 * 10_000.0),
        ("sampled_around/always", 1_500.0 * 20_000.0),
    ] {
        assert_in_phases(paths[path], 1_500.0, own);
    }
    assert_eq!(paths.len(), 4, "{:?}", paths.keys());
}

/// Asserts that a path that was recorded in phases has this number of calls, and a total that is right within its error.
#[track_caller]
fn assert_in_phases(node: &Node, calls: f64, own_ns: f64) {
    assert!((node.calls - calls).abs() < 1e-6 && (node.recorded as f64) < 0.7 * calls, "{node:?}");
    assert!(node.self_error_ns < 0.2 * own_ns, "{node:?}");
    // One value in 15,000 is off by more than four standard errors.
    let within = 4.0 * node.self_error_ns + calls * 1_000.0;
    assert!((node.self_ns - own_ns).abs() < within, "{own_ns}: {node:?}");
}

#[test]
fn totals_of_async_functions_in_phases_are_within_error() {
    let run = scenario("tree/async_shares", &[]).in_phases().untraced().run();
    let paths = paths(&run);
    let inside: f64 = (0..1_500).map(|n| 10_000.0 * (1 + n % 7) as f64).sum();
    let calls = 1_500.0;
    for (path, own) in [
        ("waits_sampled", calls * 10_000.0),
        ("waits_sampled/waits_sampled_inside", calls * 10_000.0),
        ("waits_sampled/waits_sampled_inside/sampled_inside", inside),
        ("waits_on_stream/always", calls * 20_000.0),
        ("shared", calls * 20_000.0),
    ] {
        assert_in_phases(paths[path], calls, own);
    }
    assert_eq!(paths.len(), 6, "{:?}", paths.keys());
}

#[test]
fn totals_inside_sampled_functions_are_right_within_their_errors() {
    let run = scenario("tree/sampled_inside", &[]).in_phases().untraced().run();
    let paths = paths(&run);
    for function in [
        "rarely_by_events",
        "often_by_events",
        "half_by_kernels",
        "in_rarely",
        "in_often",
        "in_half",
    ] {
        let of = |(path, _): &(&String, &&Node)| path.rsplit('/').next() == Some(function);
        let nodes = || paths.iter().filter(of).map(|(_, node)| node);
        let calls: f64 = nodes().map(|node| node.calls).sum();
        let own: f64 = nodes().map(|node| node.self_ns).sum();
        let ns = if function.starts_with("in_") { 20_000.0 } else { 10_000.0 };
        assert_time(own, calls * ns, calls);
        // All its kernels take the same time, and the number of its calls is known.
        assert!((calls / 2_000.0 - 1.0).abs() < 1e-6, "{function}: {calls}");
    }
}

#[test]
fn gpu_that_waits_for_the_host_is_launch_bound() {
    let run = scenario("tree/late", &[]).with_cupti().env("GPU_TIME_VIEW", "tree").run();
    let paths = paths(&run);
    let (prompt, late) = (paths["prompt"], paths["late_by_turns"]);
    assert!(!prompt.launch_bound && late.launch_bound, "{prompt:?} {late:?}");
    let per_call = late.per_call.as_ref().unwrap();
    assert_eq!(per_call.kernels, Some(5.0));
    assert_time(per_call.busy_ns, 50_000.0, 5.0);
    // Each of the four waits ends 100 µs after the preceding launch.
    let least = if is_real() { 300_000.0 } else { 350_000.0 };
    let waited_ns = per_call.waited_ns.unwrap();
    assert!(waited_ns > least, "{per_call:?}");
    assert!(waited_ns <= per_call.span_ns - 0.99 * per_call.busy_ns, "{per_call:?}");
    assert!(per_call.host_ns.unwrap() > 0.0);
    assert!(run.stderr.contains("waits for "), "{}", run.stderr);
    assert!(run.stderr.contains("share"), "{}", run.stderr);
}

#[test]
fn waiting_for_other_stream_is_not_launch_bound() {
    let run = scenario("tree/behind", &[]).with_cupti().env("GPU_TIME_VIEW", "tree").run();
    let behind = paths(&run)["behind"];
    let per_call = behind.per_call.as_ref().unwrap();
    assert!(per_call.span_ns > 800_000.0 && per_call.busy_ns < 40_000.0, "{per_call:?}");
    assert!(per_call.waited_ns.unwrap() < 100_000.0, "{per_call:?}");
    assert!(!behind.launch_bound, "{behind:?}");
    assert!(!run.stderr.contains("waits for the CPU"), "{}", run.stderr);
}

#[test]
fn concurrent_work_counts_once_as_busy() {
    let run = scenario("tree/overlap", &["100"]).with_cupti().run();
    let (device, node) = (&run.report().devices[0], paths(&run)["long"]);
    assert_time(node.self_ns, 200.0 * LONG, 200.0);
    assert_eq!(node.self_ns_by_device, BTreeMap::from([(device.id.clone(), node.self_ns)]));
    // The whole run is recorded, so that its windows tell how busy the GPU was. The second kernel starts while the first
    // one runs, as soon as the host has launched it.
    let coverage = device.coverage.as_ref().unwrap();
    let at_once_ns = node.self_ns - coverage.busy * coverage.total_ns;
    assert!(at_once_ns > 0.6 * 100.0 * LONG && at_once_ns < 100.0 * LONG, "{coverage:?}");
}

/// The duration of each kernel in functions timed by events.
const LONG: f64 = 100_000.0;

/// Asserts a path's number of calls, and its times as numbers of kernels per call. Events and inner
/// brackets cause an error of less than 3 %.
#[track_caller]
fn assert_by_events(node: &Node, calls: f64, inclusive: f64, own: f64) {
    assert_eq!((node.source.as_str(), node.calls), ("events", calls), "{node:?}");
    assert!(!node.upper_bound, "{node:?}");
    let is_near = |found: f64, kernels: f64| {
        let ns = calls * kernels * LONG;
        (found - ns).abs() < 0.03 * inclusive * calls * LONG
    };
    assert!(is_near(node.inclusive_ns, inclusive) && is_near(node.self_ns, own), "{node:?}");
}

#[test]
fn events_give_every_path_its_time() {
    let run = scenario("tree/events", &[]).env("GPU_TIME_VIEW", "tree").html().run();
    let paths = paths(&run);
    for (path, calls, inclusive, own) in [
        ("outer", 20.0, 13.0, 1.0),
        ("outer/middle", 20.0, 8.0, 2.0),
        ("outer/middle/leaf", 40.0, 3.0, 3.0),
        ("outer/leaf", 20.0, 3.0, 3.0),
        ("outer/aside", 20.0, 1.0, 1.0),
        ("by_launches", 20.0, 5.0, 2.0),
        ("by_launches/leaf", 20.0, 3.0, 3.0),
        ("leaf", 20.0, 3.0, 3.0),
        ("repeated", 20.0, 3.0, 1.0),
        ("repeated/repeated", 20.0, 2.0, 1.0),
        ("repeated/repeated/repeated", 20.0, 1.0, 1.0),
    ] {
        let node = paths[path];
        assert_by_events(node, calls, inclusive, own);
        assert_eq!((node.inclusive_error_ns, node.self_error_ns), (0.0, 0.0), "{path}");
        assert!(!node.callers_unknown, "{path}");
        let per_call = node.per_call.as_ref().unwrap();
        assert_eq!((per_call.kernels, per_call.waited_ns), (None, None));
        assert!(per_call.host_ns.is_some_and(|ns| ns > 0.0), "{path}");
    }
    assert_eq!(paths.len(), 11);
    assert!(run.stderr.contains("(by events)"), "{}", run.stderr);
    // Nested functions count once.
    let page = run.page.as_ref().unwrap();
    let measured = 20.0 * (13.0 + 5.0 + 3.0 + 3.0) * LONG / 1e6;
    // No GPU is busy for longer than the process runs. The simulated one may be, in virtual time.
    let measured = measured.min(run.report().process.wall_ns as f64 / 1e6);
    let found = page.split("GPU busy in functions</dt><dd>").nth(1).unwrap();
    let found = found.split(' ').next().unwrap().trim_start_matches('≤');
    let found: f64 = found.parse().unwrap();
    assert!((found / measured - 1.0).abs() < 0.03, "{found} for {measured} ms");
}

#[test]
fn shares_in_the_table_are_of_self_time() {
    let run = scenario("tree/events", &[]).run();
    let share = |name: &str| -> f64 {
        let row = format!("scenario::tree::{name} ");
        let line = run.stderr.lines().find(|line| line.starts_with(&row)).unwrap();
        line.split_whitespace().last().unwrap().trim_end_matches('%').parse().unwrap()
    };
    let own = [
        ("outer", 1.0),
        ("middle", 2.0),
        ("aside", 1.0),
        ("leaf", 15.0),
        ("by_launches", 2.0),
        ("repeated", 3.0),
    ];
    for (name, kernels) in own {
        let found = share(name);
        assert!((found - 100.0 * kernels / 24.0).abs() < 1.0, "{name}: {found}\n{}", run.stderr);
    }
    assert!((own.iter().map(|(name, _)| share(name)).sum::<f64>() - 100.0).abs() < 1.0);
}

#[test]
fn sampled_calls_by_events_are_right_within_their_errors() {
    let run = scenario("tree/sampled", &[]).run();
    let paths = paths(&run);
    let functions = ["around", "often", "half", "each"];
    for (function, kernels) in functions.into_iter().zip([1.0, 1.0, 2.0, 3.0]) {
        let of = |(path, _): &(&String, &&Node)| path.rsplit('/').next() == Some(function);
        let own: f64 = paths.iter().filter(of).map(|(_, node)| node.self_ns).sum();
        let variance: f64 =
            paths.iter().filter(of).map(|(_, node)| node.self_error_ns.powi(2)).sum();
        let ns = 1_000.0 * kernels * LONG;
        let error = variance.sqrt();
        assert!((own - ns).abs() < 4.0 * error + 0.03 * ns, "{function}: {own} ±{error} for {ns}");
        assert!(error < ns, "{function}: ±{error} of {ns}");
    }
    // `around` is always timed, and all of its callers are known.
    assert!(!paths["around"].callers_unknown);
    assert_eq!(paths["around"].calls, 1_000.0);
    // Callers that were not timed are missing.
    for path in ["around/half", "around/each", "around/often/each", "around/half/each"] {
        assert!(paths[path].callers_unknown, "{path}");
    }
    for path in ["around/often", "around/often/half", "around/often/half/each"] {
        assert!(!paths[path].callers_unknown, "{path}");
    }
    // The self times add up to the time of the outermost calls.
    let whole: f64 = paths.values().map(|node| node.self_ns).sum();
    let error = paths.values().map(|node| node.self_error_ns.powi(2)).sum::<f64>().sqrt();
    assert!((whole - 7_000.0 * LONG).abs() < 4.0 * error, "{whole} ±{error}");
}

#[test]
fn events_and_records_agree() {
    let by_events = scenario("tree/mixed", &[]).run();
    let recorded = scenario("tree/mixed", &[]).recorded().run();
    let recorded = paths(&recorded);
    let paths = paths(&by_events);
    for (path, inclusive, own) in
        [("each", 3.0, 3.0), ("partly", 4.0, 1.0), ("partly/each", 3.0, 3.0)]
    {
        assert_by_events(paths[path], 100.0, inclusive, own);
        let node = recorded[path];
        assert_eq!((node.source.as_str(), node.recorded, node.calls), ("opened", 100, 100.0));
        assert_time(node.self_ns, 100.0 * own * LONG, 100.0 * own);
        assert_time(node.inclusive_ns, 100.0 * inclusive * LONG, 100.0 * inclusive);
    }
}

#[test]
fn calls_in_futures_are_inside_of_those_that_are_polled() {
    let run = scenario("tree/futures", &[]).run();
    let paths = paths(&run);
    for (path, calls, own) in [
        ("waits", 20.0, 1.0),
        ("waits/waits_inside/each", 20.0, 3.0),
        ("waits_elsewhere", 20.0, 1.0),
        ("waits_elsewhere/each", 20.0, 3.0),
        ("each", 20.0, 3.0),
    ] {
        let node = paths[path];
        assert_eq!(node.calls, calls, "{path}");
        assert!((node.self_ns / (calls * own * LONG) - 1.0).abs() < 0.03, "{path}: {node:?}");
    }
    assert_eq!(paths.len(), 6);
    // Between the two polls of `waits_inside`, another function was called on its stream.
    let inside = paths["waits/waits_inside"];
    assert!(inside.upper_bound, "{inside:?}");
    let ratio = inside.self_ns / (20.0 * 5.0 * LONG);
    // The time that the host takes between the launches is in the bound. It is less than the work of `each`.
    assert!(ratio > 0.97 && ratio < 8.0 / 5.0, "{inside:?}");
}

/// A phase is one draw with all calls in it, so a function that is called fifty times in each call of another one is not
/// known much better. A phase may begin inside the outer call, and then only has inner ones.
#[test]
fn error_of_inner_calls_is_near_that_of_the_calls_around_them() {
    let run = scenario("tree/layers", &[]).in_phases().untraced().run();
    let paths = paths(&run);
    let [pass, layer] = ["pass", "pass/layer"].map(|path| paths[path]);
    let ratio = layer.inclusive_error_ns / pass.inclusive_error_ns;
    assert!((0.5..1.5).contains(&ratio), "{ratio}: {pass:?} {layer:?}");
    let truth = 300.0 * 50.0 * 30_000.0;
    assert!((layer.inclusive_ns - truth).abs() < 4.0 * layer.inclusive_error_ns + 1e-3 * truth);
    let mean = layer.per_call.as_ref().unwrap();
    assert!((mean.busy_ns / 30_000.0 - 1.0).abs() < 0.3 && mean.kernels == Some(1.0), "{mean:?}");
}
