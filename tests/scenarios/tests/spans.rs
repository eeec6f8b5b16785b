//! Tests for `tracing` spans: their rows, and their paths in the call tree.

use crate::harness::tree::{OVER, assert_time, paths};
use crate::harness::{Run, scenario};

/// The duration of each kernel.
const NS: f64 = 10_000.0;

/// Asserts that `found` is the time of this many kernels.
#[track_caller]
fn assert_kernels(found: f64, kernels: f64) {
    assert_time(found, kernels * NS, kernels);
}

/// Asserts that the run has exactly these paths, each with its number of calls, and its inclusive and self time
/// per call as multiples of [`NS`].
#[track_caller]
fn assert_paths(run: &Run, expected: &[(&str, f64, f64, f64)]) {
    let paths = paths(run);
    for &(path, calls, inclusive, own) in expected {
        let node = paths.get(path).unwrap_or_else(|| panic!("no {path}: {:?}", paths.keys()));
        assert_eq!((node.source.as_str(), node.calls), ("opened", calls), "{path}");
        assert_eq!((node.inclusive_error_ns, node.self_error_ns), (0.0, 0.0), "{path}");
        assert_kernels(node.inclusive_ns, calls * inclusive);
        assert_kernels(node.self_ns, calls * own);
    }
    assert_eq!(paths.len(), expected.len(), "{:?}", paths.keys());
}

#[test]
fn nested_spans_are_paths_with_exact_times() {
    let run = scenario("spans/nested", &["30"]).with_cupti().run();
    assert_paths(
        &run,
        &[
            ("request", 30.0, 6.0, 1.0),
            ("request/layer", 60.0, 2.0, 1.0),
            ("request/layer/norm", 60.0, 1.0, 1.0),
            ("request/again", 30.0, 1.0, 1.0),
        ],
    );
    let layer = run.site("spans::layer");
    assert_eq!(layer.options, "span");
    assert!(layer.file.ends_with("src/spans.rs") && layer.line > 0, "{layer:?}");
    let row = run.row("spans::layer");
    assert_eq!((row.clock.as_str(), row.timed, row.opened, row.in_flight), ("kernels", 60, 60, 0));
    assert_eq!(row.kernels.kernels_per_call, Some(2.0));
}

/// The root begins outside of the phase.
#[test]
fn spans_inside_one_that_is_longer_than_phases_are_recorded() {
    let run = scenario("spans/whole", &[]).with_cupti().run();
    let paths = paths(&run);
    for (path, calls) in [("request", 10), ("request/layer", 20), ("request/layer/norm", 20)] {
        assert_eq!(paths[path].recorded, calls, "{path}");
    }
}

#[test]
fn spans_and_functions_nest() {
    let run = scenario("spans/functions", &[]).with_cupti().run();
    assert_paths(
        &run,
        &[
            ("around", 20.0, 3.0, 0.0),
            ("around/inner", 20.0, 3.0, 1.0),
            ("around/inner/innermost", 20.0, 2.0, 2.0),
            ("outer", 20.0, 7.0, 1.0),
            ("outer/request", 20.0, 6.0, 1.0),
            ("outer/request/layer", 40.0, 2.0, 1.0),
            ("outer/request/layer/norm", 40.0, 1.0, 1.0),
            ("outer/request/again", 20.0, 1.0, 1.0),
        ],
    );
}

#[test]
fn spans_of_futures_follow_their_polls() {
    let run = scenario("spans/futures", &[]).with_cupti().run();
    assert_paths(
        &run,
        &[
            ("one", 10.0, 6.0, 2.0),
            ("one/inside", 10.0, 4.0, 4.0),
            ("other", 10.0, 18.0, 6.0),
            ("other/inside", 10.0, 12.0, 12.0),
            ("given_up", 10.0, 3.0, 1.0),
            ("given_up/inside", 10.0, 2.0, 2.0),
        ],
    );
    assert_eq!(run.row("spans::inside").opened, 30);
}

#[test]
fn spans_on_other_threads_are_under_their_parents() {
    // `moved` counts once on each thread.
    let run = scenario("spans/threads", &[]).with_cupti().keeps_counting().run();
    assert_paths(
        &run,
        &[
            ("request", 10.0, 6.0, 1.0),
            ("request/moved", 20.0, 1.0, 1.0),
            ("request/helper", 10.0, 3.0, 2.0),
            ("request/helper/norm", 10.0, 1.0, 1.0),
            ("alone", 10.0, 1.0, 1.0),
        ],
    );
}

#[test]
fn entry_beside_that_of_another_thread_is_lost() {
    let run = scenario("spans/shared", &[]).with_cupti().keeps_counting().run();
    assert_paths(&run, &[("request", 10.0, 1.0, 1.0)]);
    // The first entry on the second thread comes before the device is known.
    let rows = || run.site("spans::request").rows(None);
    let [timed, opened, lost] = [
        rows().map(|row| row.timed).sum::<u64>(),
        rows().map(|row| row.opened).sum(),
        rows().map(|row| row.lost("thread")).sum(),
    ];
    assert_eq!((timed, opened, lost), (20, 10, 10));
}

#[test]
fn sampled_roots_give_totals_within_their_errors() {
    let run = scenario("spans/sampled", &[]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    let short: f64 = (0..1_500).filter(|turn| turn % 3 > 0).map(|turn| (1 + turn % 5) as f64).sum();
    for (path, calls, roots, kernels) in [
        ("request", 500.0, 500.0, 500.0),
        ("request/layer", 1_000.0, 500.0, 1_000.0),
        ("request/layer/norm", 1_000.0, 500.0, 1_000.0),
        ("request/again", 500.0, 500.0, 500.0),
        ("short", 1_000.0, 1_000.0, short),
    ] {
        let node = paths[path];
        // One value in 15,000 is off by more than four standard errors.
        let error = node.self_error_ns;
        assert!(error > 0.01 * kernels * NS && error < 0.1 * kernels * NS, "{node:?}");
        let found = node.self_ns;
        let within = kernels * NS - 4.0 * error..kernels * (NS + OVER) + 4.0 * error;
        assert!(within.contains(&found), "{kernels}: {node:?}");
        let site = run.site(&format!("spans::{}", path.rsplit('/').next().unwrap()));
        assert!((site.calls as f64 - node.calls).abs() <= 0.5, "{path}: {site:?}");
        let total = site.series[0].estimated_total_ns.unwrap();
        assert!((total / node.inclusive_ns - 1.0).abs() < 1e-3, "{total}: {node:?}");
        let of_roots = 4.0 * (roots * 0.25 * 0.75_f64).sqrt() / roots / 0.25;
        assert!((node.calls / calls - 1.0).abs() < of_roots, "{node:?}");
    }
    assert_eq!(paths.len(), 5);
    // Either all or none of a root's spans are recorded.
    assert_eq!(paths["request/layer"].recorded, 2 * paths["request"].recorded);
}

#[test]
fn function_is_recorded_with_or_without_its_span() {
    let run = scenario("spans/around", &[]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    assert_eq!(
        paths.keys().collect::<Vec<_>>(),
        ["around", "around/inner", "around/inner/innermost", "inner", "inner/innermost"]
    );
    for (name, kernels) in [("inner", 1.0), ("inner/innermost", 2.0)] {
        let nodes = [paths[name], paths[&*format!("around/{name}")]];
        assert_eq!(nodes[0].recorded + nodes[1].recorded, 400, "{nodes:?}");
        assert_eq!(nodes[0].calls + nodes[1].calls, 400.0, "{nodes:?}");
        assert!(nodes.iter().all(|node| node.self_error_ns == 0.0), "{nodes:?}");
        assert_kernels(nodes[0].self_ns + nodes[1].self_ns, 400.0 * kernels);
    }
    assert!(paths["inner"].callers_unknown && !paths["around"].callers_unknown);
    assert_eq!(run.site("spans::inner").calls, 400);
}

/// The number of entries of a kept span that are mistaken for entries of a single call.
const BEFORE_KEPT: f64 = 9.0;

#[test]
fn every_entry_of_a_kept_span_is_a_call() {
    let run = scenario("spans/kept", &["100", "1"]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["head", "layer", "layer/norm"]);
    for (path, of_pass) in [("head", 1.0), ("layer", 3.0), ("layer/norm", 6.0)] {
        let node = paths[path];
        let least = of_pass * (100.0 - 2.0 * BEFORE_KEPT);
        assert!(node.calls >= least && node.calls <= of_pass * 100.0, "{path}: {node:?}");
    }
    let [head, layer, norm] = ["head", "layer", "layer/norm"].map(|path| paths[path]);
    assert_kernels(head.self_ns, head.calls);
    assert_kernels(layer.self_ns, layer.calls);
    // Spans inside a cancelled call are recorded, and entries mistaken for a single call still
    // count with all of their time.
    assert_kernels(norm.self_ns, 600.0);
    for (node, inside) in [(head, 0.0), (layer, norm.inclusive_ns), (norm, 0.0)] {
        assert!((node.inclusive_ns - node.self_ns - inside).abs() < 1.0, "{node:?}");
    }
    // The entries first mistaken for a single call count as one cancelled call.
    assert_eq!(run.row("spans::head").lost("cancelled"), 1);
}

#[test]
fn entries_of_kept_spans_are_sampled() {
    let run = scenario("spans/kept", &["2000", "0.1"]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    for (path, roots, of_root) in
        [("head", 2_000.0_f64, 1.0), ("layer", 6_000.0, 1.0), ("layer/norm", 6_000.0, 2.0)]
    {
        let node = paths[path];
        // Each root is recorded with a probability of 0.1. One value in 15,000 is off by more than four standard
        // errors. The runtime needs the first passes to find that the spans are kept.
        let error = 4.0 * (roots * 0.9 / 0.1).sqrt() + 0.05 * roots;
        assert!((node.calls / of_root - roots).abs() < error, "{path}: {node:?}");
        assert_kernels(node.self_ns / node.calls, 1.0);
    }
}

#[test]
fn future_with_many_polls_is_one_call() {
    let run = scenario("spans/polled", &[]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    let request = paths["request"];
    // The first request is mistaken for a kept span.
    assert_eq!(run.row("spans::request").lost("cancelled"), 1);
    assert!(request.calls >= 19.0 + 20.0 && request.calls <= 19.0 + 30.0, "{request:?}");
    assert_kernels(request.self_ns, 19.0 * 30.0 + request.calls - 19.0);
}

/// Asserts that an estimate of 400 calls, of which one in four is recorded, is off by less than four standard errors.
#[track_caller]
fn assert_of_400(calls: f64) {
    assert!((calls - 400.0).abs() < 4.0 * (400.0 * 0.75 / 0.25_f64).sqrt(), "{calls}");
}

#[test]
fn span_made_outside_and_entered_inside_is_no_root() {
    let run = scenario("spans/made_before", &[]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["outside", "outside/inside_later"]);
    // The two spans are recorded together, so their estimates are equal.
    assert_eq!(paths["outside"].calls, paths["outside/inside_later"].calls);
    for node in paths.values() {
        assert_of_400(node.calls);
        assert_kernels(node.self_ns, node.calls);
    }
}

/// Spans are recorded inside functions that events time outside of phases.
#[test]
fn spans_inside_functions_by_events_are_recorded() {
    let run = scenario("spans/beside", &[]).recorded().keeps_counting().run();
    let paths = paths(&run);
    assert_eq!((paths["by_events"].recorded, paths["by_events/inside"].recorded), (400, 2_800));
    assert_of_400(paths["beside"].calls);
    assert_of_400(run.site("spans::beside").calls as f64);
}

#[test]
fn spans_fifty_deep_are_paths() {
    let run = scenario("spans/deep", &["40"]).with_cupti().keeps_counting().run();
    let paths = paths(&run);
    assert_eq!(paths.len(), 50);
    for (path, node) in paths {
        let depth = path.split('/').count() as f64;
        let deepest = if depth < 50.0 { 40.0 } else { 20.0 };
        assert_eq!((node.calls, node.self_error_ns), (deepest, 0.0), "{path}");
        assert_kernels(node.self_ns, deepest);
        let inclusive = 20.0 * (50.0 - depth + 1.0) + 20.0 * (49.0 - depth + 1.0);
        assert_kernels(node.inclusive_ns, inclusive);
    }
    assert_eq!(run.row("spans::level").opened, 40 * 50 - 20);
}

#[test]
fn spans_left_before_inner_ones_keep_order() {
    let run = scenario("spans/crossed", &[]).with_cupti().run();
    let paths = paths(&run);
    for (path, inclusive, own) in [
        ("outer", 2.0, 1.0),
        ("outer/left_first", 1.0, 0.0),
        ("outer/left_first/left_last", 1.0, 1.0),
    ] {
        assert_kernels(paths[path].inclusive_ns, 5.0 * inclusive);
        assert_kernels(paths[path].self_ns, 5.0 * own);
    }
    // `late` is exited after the call that it belongs to.
    assert_eq!(run.row("spans::late").lost("unfinished"), 5);
}

#[test]
fn forked_child_leaves_the_recorded_span() {
    let run = scenario("spans/fork", &[]).with_cupti().run();
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_paths(&run, &[("request", 3.0, 2.0, 2.0)]);
}

#[test]
fn unwinding_spans_are_recorded() {
    let run = scenario("spans/unwinding", &[]).with_cupti().run();
    assert_paths(
        &run,
        &[
            ("catches", 5.0, 2.0, 1.0),
            ("catches/unwinds", 5.0, 1.0, 1.0),
            ("unwinds", 5.0, 1.0, 1.0),
        ],
    );
}

#[test]
fn budget_counts_spans_and_their_launches() {
    let nested = scenario("spans/nested", &["50"]).with_cupti().keeps_counting();
    let run = nested.env("GPU_TIME_BUDGET", "99%").run();
    let counted_ns = run.report().process.budget.as_ref().unwrap().device_ns;
    let requests = run.row("spans::request").opened;
    // Each request has six launches, which cost half a microsecond each, and six spans with seven entries.
    let launches_ns = 6 * 500 * requests;
    assert!(counted_ns > launches_ns + 7 * 50 * requests, "{counted_ns} for {requests}");
    assert!(counted_ns < launches_ns + 7 * 100_000 * requests, "{counted_ns} for {requests}");
}

#[test]
fn spans_that_are_never_chosen_leave_nothing() {
    let run = scenario("spans/never", &[]).with_cupti().keeps_counting().run();
    let sites: Vec<_> = run.report().sites.iter().filter(|site| site.calls > 0).collect();
    let [function] = &sites[..] else { panic!("{sites:?}") };
    assert_eq!((function.name.as_str(), function.calls), ("scenario::spans::inner_of_nobody", 1));
    assert_eq!(paths(&run).into_keys().collect::<Vec<_>>(), ["inner_of_nobody"]);
}

#[test]
fn spans_that_chance_passed_over_are_explained() {
    let run = scenario("spans/nested", &["5", "1e-9"]).with_cupti().keeps_counting();
    let run = run.warns("no root span of `tracing` has been recorded").run();
    assert!(run.report().tree.is_empty(), "{:?}", run.report().tree);
}

#[test]
fn variable_switches_spans_off() {
    let nested = || scenario("spans/nested", &["5"]).with_cupti().keeps_counting();
    let run = nested().env("GPU_TIME_RECORD", "off").run();
    assert!(run.report().tree.is_empty(), "{:?}", run.report().tree);
    assert!(run.report().sites.iter().all(|site| site.options != "span"));
    let off = nested().env("GPU_TIME", "off").reports_nothing().run();
    assert_eq!(off.stderr, "");
}

#[test]
fn field_divides_spans_into_series() {
    let run = scenario("spans/keyed", &[]).with_cupti().run();
    let series = |name: &str| -> Vec<_> {
        let site = run.site(name);
        let rows = site.series.iter();
        rows.map(|row| (row.key.clone().unwrap_or_default(), row.opened)).collect()
    };
    let expected = |keys: [&str; 3]| {
        keys.into_iter().zip([1, 2, 1]).map(|(key, n)| (key.to_owned(), n)).collect::<Vec<_>>()
    };
    assert_eq!(series("spans::batch"), expected(["1", "2", "3"]));
    assert_eq!(series("spans::head"), expected(["1x2", "2x2", "3x2"]));
    assert_eq!(series("spans::plain"), [(String::new(), 4)]);
    assert_eq!(run.site("spans::batch").options, "span, key = shape");
}

/// Tests that need the stand-in for CUPTI.
mod simulated {
    use gpu_time_sim_cupti::SimCupti;

    use super::*;

    #[test]
    fn spans_without_cupti_are_lost_with_the_reason() {
        let held = SimCupti::default().script("other=exclusive");
        let run = scenario("spans/nested", &["5"]).keeps_counting().on_cupti(held).run();
        let site = run.site("spans::request");
        assert_eq!((site.calls, site.timed, site.series[0].lost["records"]), (5, 5, 5));
        let why = run.report().process.kernels.clone().unwrap_or_default();
        assert!(why.contains("another tool"), "{why}");
    }
}
