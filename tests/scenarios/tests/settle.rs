//! Tests for `until_stable` runs. The number of calls is not fixed, so the tests check the results.

use std::process::Command;

use crate::harness::report::Series;
use crate::harness::{Run, assert_lasts, is_real, program, scenario};

fn run(name: &str) -> Run {
    run_with(name, &[])
}

fn run_with(name: &str, arguments: &[&str]) -> Run {
    let run = scenario(&format!("settle/{name}"), arguments).untraced().run();
    // Without a terminal, only the report is printed.
    assert!(!run.stderr.contains('\r') && !run.stderr.contains("settled"), "{}", run.stderr);
    run
}

/// Returns half the width of the interval as a fraction of the median.
fn margin(row: &Series) -> f64 {
    let [low, high] = row.ci95_ns.expect("there is an interval");
    (high - low) / 2.0 / row.net_ns.as_ref().expect("there are net times").median
}

#[test]
fn steady_kernel_settles() {
    let run = run("steady");
    assert_eq!((run.fact("first unmet"), run.fact("second unmet")), (0, 0));
    // The second run needs 65 samples. Those recorded before it do not count.
    assert!(run.fact("first calls") >= 7 && run.fact("second calls") >= 9);
    let site = run.site("settle::timed");
    let rounds = run.fact("first calls") + run.fact("second calls");
    assert_eq!(site.counts(), (8 * rounds, 3, 0, 8 * rounds - 3));
    assert_eq!(site.row().in_flight, 0);
    assert_lasts(site.row(), 10_000.0);
    assert_eq!(run.site("settle::untouched").calls, 1);
    if !is_real() {
        // Virtual time has no jitter.
        assert_eq!(margin(site.row()), 0.0);
    }
}

#[test]
fn varying_kernel_settles() {
    let run = run("varied");
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::timed");
    assert!(margin(row) <= 0.02, "{row:?}");
    // With 50 samples the margin would be about 0.09.
    assert!(row.fed > 200, "{row:?}");
}

#[test]
fn run_uses_own_samples() {
    let run = run("after_others");
    assert_eq!((run.fact("alternating unmet"), run.fact("steady unmet")), (1, 0));
    assert_eq!(run.fact("alternating calls"), 1);
    let figure = |what: &str| run.fact(what) as f64;
    assert!(figure("alternating least") >= 99_000.0 && figure("alternating median") >= 99_000.0);
    assert!(figure("alternating width") >= 190_000.0);
    for what in ["alternating mean", "alternating sum"] {
        assert!((figure(what) - 200_000.0).abs() < 5_000.0, "{what}: {}", figure(what));
    }
    for what in ["steady least", "steady median", "steady mean", "steady sum"] {
        assert!((figure(what) - 100_000.0).abs() < 5_000.0, "{what}: {}", figure(what));
    }
    // The report covers the whole process.
    let row = run.row("settle::timed");
    assert_eq!(row.measured, 11_497 + 100 * (1 + run.fact("steady calls")));
    assert!(row.net_ns.as_ref().unwrap().median < 25_000.0, "{row:?}");
}

#[test]
fn feeding_change_settles() {
    let run = run("feeding_change");
    assert_eq!((run.fact("starved unmet"), run.fact("fed unmet")), (0, 0));
}

#[test]
fn timeout_ends_run() {
    let run = run("timeout");
    for (name, samples, has_series, has_margin) in
        [("warming", 0, 0, 0), ("short", 4, 1, 0), ("below min_samples", 20, 1, 1)]
    {
        let fact = |what: &str| run.fact(&format!("{name} {what}"));
        assert_eq!((fact("calls"), fact("unmet")), (1, 1), "{name}");
        assert_eq!((fact("series"), fact("margin")), (has_series, has_margin), "{name}");
        // One of the samples was not held, so it is not fed.
        assert!(fact("samples") <= samples && fact("samples") + 1 >= samples, "{name}");
    }
}

#[test]
fn run_without_samples_ends() {
    let run = run("lost");
    assert_eq!(run.fact("run unmet"), 2, "the function and its launch");
    assert!(run.fact("run calls") >= 50);
}

#[test]
fn run_overrides_cold() {
    // Rounds of ten calls: two rounds with the attributes' settings, one cold, one as found, one
    // dirty.
    let counts = |run: &Run, name: &str| {
        let site = run.site(&format!("settle::{name}"));
        ["as-found", "cold", "cold-dirty"].map(|cache| {
            let rows = site.rows(None).filter(|row| row.cache == cache);
            rows.map(|row| row.timed).sum::<u64>()
        })
    };
    let free = run("cold");
    assert_eq!(counts(&free, "plain_held"), [30, 10, 10]);
    assert_eq!(counts(&free, "plain"), [30, 10, 10]);
    assert_eq!(counts(&free, "dirty"), [10, 10, 30]);

    // The environment overrides the run.
    let forced = scenario("settle/cold", &[]).env("GPU_TIME_COLD", "clean").untraced().run();
    for name in ["plain_held", "plain", "dirty"] {
        assert_eq!(counts(&forced, name), [0, 50, 0], "{name}");
    }
}

#[test]
fn nested_runs() {
    let run = run("nested");
    assert_eq!((run.fact("outer unmet"), run.fact("inner")), (0, run.fact("outer calls")));
    assert!(run.fact("outer calls") >= 53, "3 to warm up and 50");
    assert!(run.row("settle::untouched").measured >= 50 * run.fact("inner"));
    // While the inner run is active, its setting applies; otherwise, that of the outer one.
    assert_eq!(run.row("settle::untouched").cache, "as-found");
    assert_eq!(run.row("settle::timed").cache, "cold");
}

#[test]
fn calls_on_other_threads_settle() {
    let run = run("threads");
    assert_eq!(run.fact("run unmet"), 0);
    for name in ["settle::timed", "settle::untouched"] {
        let row = run.row(name);
        assert!(row.fed.max(row.starved) >= 50, "{row:?}");
    }
}

/// Otherwise, each would count the other's calls.
#[test]
fn runs_of_several_threads_take_turns() {
    let run = run("at_once");
    assert!(run.fact("10000 longest") < 90_000 && run.fact("100000 least") >= 90_000);
}

#[test]
fn no_phase_begins_during_a_run() {
    let run = scenario("settle/among_phases", &[]).in_phases().untraced().run();
    assert_eq!((run.fact("by events unmet"), run.fact("opened by events")), (0, 0));
    // A function that needs records is recorded in each call.
    assert_eq!(run.fact("recorded unmet"), 0);
    let calls = run.fact("recorded calls");
    assert!(run.fact("opened recorded") + 1 >= calls, "of {calls}");
    assert_eq!(run.fact("both unmet"), 0);
}

#[test]
fn closure_that_never_waits() {
    let run = run("queue");
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::plain");
    assert_eq!((row.timed, row.in_flight), (run.fact("run calls"), 0));
}

#[test]
fn host_clock_settles() {
    let run = run_with("any_clock", &["cpu"]);
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::on_gpu_or_cpu");
    assert!(row.device == "host" && row.measured >= 50, "{row:?}");
}

/// One call is enough to find that nothing is timed.
#[test]
fn run_without_timing_ends_at_once() {
    let filtered = scenario("settle/any_clock", &[]).env("GPU_TIME_FILTER", "no_such_function");
    let filtered = filtered.warns("the filter matches none of the ");
    let runs = [
        run_with("any_clock", &["off"]),
        run_with("back_to_back", &["off"]),
        filtered.untraced().run(),
        scenario("settle/any_clock", &[]).env("GPU_TIME", "off").reports_nothing().untraced().run(),
    ];
    for run in &runs {
        assert_eq!((run.fact("run calls"), run.fact("run unmet")), (1, 0));
    }
}

/// Back to back, a call takes little longer than its kernels, and its time includes no host time.
#[test]
fn back_to_back_excludes_host_time() {
    let run = run("back_to_back");
    assert_eq!((run.fact("run calls"), run.fact("run unmet")), (51, 0));
    assert!(run.fact("replays") >= 50);
    let per_call_ns = run.fact("per_call_ns");
    assert!((15_000..20_000).contains(&per_call_ns), "{per_call_ns} ns");
    assert_eq!(run.fact("span_ns") / 50, per_call_ns);
    // One call to each function was timed, but the captured calls were not.
    for name in ["settle::node", "settle::plain"] {
        let site = run.site(name);
        assert_eq!(site.counts(), (51, 0, 0, 51), "{name}");
        let rows =
            || site.rows(Some(0)).chain(site.rows(None).filter(|row| row.measure == "launch"));
        assert!(rows().all(|row| !row.graph), "{name}");
        let count = |part: fn(&Series) -> u64| site.rows(None).map(part).sum::<u64>();
        assert_eq!(count(|row| row.measured), 1, "{name}");
        assert_eq!(count(|row| row.lost("capture")), 50, "{name}");
    }
}

#[test]
fn uncapturable_closure_names_reason() {
    let run = run("refused");
    let begin = "`graph of 4 calls`: ";
    for (name, why) in [
        (
            "waits",
            "the closure does something that a capture does not allow, such as waiting or allocating",
        ),
        (
            "allocates",
            "the closure does something that a capture does not allow, such as waiting or allocating",
        ),
        ("elsewhere", "the closure enqueued nothing on the stream"),
        ("unjoined", "the closure leaves work on another stream that is never joined to this one"),
        ("null", "the NULL stream cannot be captured"),
        ("captured", "the stream is already being captured"),
    ] {
        let text = run.text(name);
        assert!(text.starts_with(&format!("{begin}{why}")), "{name}: {text}");
    }
    // One normal call, and one in the capture, which it invalidates.
    assert_eq!((run.fact("waits calls"), run.fact("allocates calls")), (2, 2));
    assert_eq!((run.fact("elsewhere calls"), run.fact("null calls")), (5, 1));
    assert_eq!(run.fact("after"), 1, "the stream must still work");
}

#[test]
fn closure_unwinds_during_capture() {
    let run =
        scenario("settle/unwinding", &[]).panics().complains("gpu-time: `Settle::graph`").run();
    let site = run.site("settle::plain");
    assert_eq!(site.counts(), (3, 0, 0, 3));
    assert_eq!(site.rows(None).map(|row| row.measured).sum::<u64>(), 2);
}

mod simulated {
    use super::*;
    use gpu_time_sim_driver::formula;

    #[test]
    fn run_settles_on_cpu_without_driver() {
        let run = scenario("settle/any_clock", &["cpu"]).without_driver().run();
        assert_eq!(run.fact("run unmet"), 0);
        assert!(run.row("settle::on_gpu_or_cpu").measured >= 50);
    }

    /// Most of the process's samples had no queue behind them, but most of the run's samples did.
    #[test]
    fn run_loses_what_queues_add_to_its_own_samples() {
        let run = run("regimes");
        let counted = [run.fact("before queued"), run.fact("run queued")];
        assert!(counted[0] == 0 && counted[1] > 250, "{counted:?}");
        let device = &run.report().devices[0];
        let [held, queued] = [device.event_held_empty_ns, device.event_queued_empty_ns];
        let more = queued.unwrap() - held.unwrap();
        let added = [run.fact("before added_ns"), run.fact("run added_ns")];
        assert_eq!(added, [0, (more * counted[1] as f64).round() as u64]);
    }

    /// The expected value is for an event pair around a hundred kernels, each with the gap that a
    /// graph adds.
    #[test]
    fn replay_span_matches_formula() {
        let run = run("back_to_back");
        let [node, plain] =
            [10_000, 5_000].map(|ns| (formula::spin_ns(ns) + 120).div_ceil(32) * 32);
        assert_eq!(run.fact("span_ns"), 1_280 + 50 * (node + plain));
    }

    #[test]
    fn driver_without_graph_instantiation() {
        let run = scenario("settle/back_to_back", &[]).without("cuGraphInstantiateWithFlags").run();
        assert_eq!((run.fact("run unmet"), run.optional_fact("replays")), (1, None));
    }

    /// If any driver call fails, the run reports it and stops.
    #[test]
    fn failed_graph_calls_are_unmet() {
        for call in [
            "cuStreamBeginCapture_v2:1",
            "cuGraphGetNodes:1",
            "cuGraphInstantiateWithFlags:1",
            "cuGraphLaunch:1",
            // The first call synchronizes when the memory for the flush proof is freed.
            "cuStreamSynchronize:2",
        ] {
            let fault = format!("{call}=999");
            let run =
                scenario("settle/back_to_back", &[]).simulated(|sim| sim.faults(&fault)).run();
            assert_eq!((run.fact("run unmet"), run.optional_fact("replays")), (1, None), "{fault}");
        }
    }
}

#[test]
fn compared_closures_take_turns() {
    let run = run("compared");
    let interval =
        |name: &str| ["low", "ratio", "high"].map(|what| run.fact(&format!("{name} {what}")));
    for (name, truth) in [("equal", 1_000_000), ("slower", 1_050_000)] {
        let [low, ratio, high] = interval(name);
        assert!(low <= truth && truth <= high, "{name}: {low} {high}");
        assert!(ratio.abs_diff(truth) < 10_000, "{name}: {ratio}");
    }
    assert!(interval("slower")[0] > 1_010_000, "{:?}", interval("slower"));
}

/// A user's test must pass in a build with timing off, but must fail if its function is no longer
/// timed.
#[test]
fn closures_without_ratio_are_refused_while_timing_is_on() {
    scenario("settle/uncompared", &[]).env("GPU_TIME", "off").reports_nothing().run();
    let output = Command::new(program()).arg("settle/uncompared").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "`new` was not compared with `old`: no timed function ran in both closures";
    assert!(!output.status.success() && stderr.contains(expected), "{stderr}");
}

/// The program asserts that the closures run in the order ABBA or BAAB in each block.
#[test]
fn compared_closures_take_turns_in_random_order() {
    let run = run("turns");
    assert!(run.fact("old first") > 0 && run.fact("new first") > 0);
}
