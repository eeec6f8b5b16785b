//! Runs of `until_stable`. They take as many calls as they take; what is judged is what came of them.

use crate::harness::report::Series;
use crate::harness::{Run, assert_lasts, is_real, scenario};

fn run(name: &str) -> Run {
    run_with(name, &[])
}

fn run_with(name: &str, arguments: &[&str]) -> Run {
    let run = scenario(&format!("settle/{name}"), arguments).untraced().run();
    // Nothing but the report is said where there is no terminal.
    assert!(!run.stderr.contains('\r') && !run.stderr.contains("settled"), "{}", run.stderr);
    run
}

/// Half of the interval's width, as a share of the median.
fn margin(row: &Series) -> f64 {
    let [low, high] = row.ci95_ns.expect("there is an interval");
    (high - low) / 2.0 / row.net_ns.as_ref().expect("they are net").median
}

#[test]
fn what_is_steady_settles() {
    let run = run("steady");
    assert_eq!((run.fact("first unmet"), run.fact("second unmet")), (0, 0));
    // 60 samples do not suffice for the second, though there were 60 before.
    assert!(run.fact("first calls") >= 1 && run.fact("second calls") >= 2);
    let site = run.site("settle::timed");
    let rounds = run.fact("first calls") + run.fact("second calls");
    assert_eq!(site.counts(), (64 * rounds, 3, 0, 64 * rounds - 3));
    assert_eq!(site.row().in_flight, 0);
    assert_lasts(site.row(), 10_000.0);
    assert_eq!(run.site("settle::untouched").calls, 1);
    if !is_real() {
        // Virtual time does not jitter.
        assert_eq!(run.fact("first calls"), 1);
        assert_eq!(margin(site.row()), 0.0);
    }
}

#[test]
fn what_varies_settles_with_enough_samples() {
    let run = run("varied");
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::timed");
    assert!(margin(row) <= 0.02, "{row:?}");
    // With 50 samples it would have been about 0.09.
    assert!(row.fed > 200, "{row:?}");
}

#[test]
fn a_run_goes_by_its_own_samples() {
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
    // The report is of the process.
    let row = run.row("settle::timed");
    assert_eq!(row.measured, 11_497 + 100 * (1 + run.fact("steady calls")));
    assert!(row.net_ns.as_ref().unwrap().median < 25_000.0, "{row:?}");
}

#[test]
fn samples_of_another_kind_than_before_settle() {
    let run = run("kinds");
    assert_eq!((run.fact("starved unmet"), run.fact("fed unmet")), (0, 0));
}

#[test]
fn the_time_limit_ends_it() {
    let run = run("limit");
    for (name, samples, has_series, has_margin) in
        [("warming", 0, 0, 0), ("short", 4, 1, 0), ("shorter than wished", 20, 1, 1)]
    {
        let fact = |what: &str| run.fact(&format!("{name} {what}"));
        assert_eq!((fact("calls"), fact("unmet")), (1, 1), "{name}");
        assert_eq!((fact("series"), fact("margin")), (has_series, has_margin), "{name}");
        // One of them is not held, and then not fed.
        assert!(fact("samples") <= samples && fact("samples") + 1 >= samples, "{name}");
    }
}

#[test]
fn what_is_only_lost_is_given_up() {
    let run = run("lost");
    assert_eq!(run.fact("run unmet"), 2, "the function and its launch");
    assert!(run.fact("run calls") >= 50);
}

#[test]
fn the_run_says_whether_the_l2_is_emptied() {
    // Rounds of ten calls: two as the sites say, one cold, one as found, one dirty.
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

    // The user of the program has the last word.
    let forced = scenario("settle/cold", &[]).env("GPU_TIME_COLD", "clean").untraced().run();
    for name in ["plain_held", "plain", "dirty"] {
        assert_eq!(counts(&forced, name), [0, 50, 0], "{name}");
    }
}

#[test]
fn a_run_inside_of_a_run() {
    let run = run("nested");
    assert_eq!((run.fact("outer unmet"), run.fact("inner")), (0, run.fact("outer calls")));
    assert!(run.fact("outer calls") >= 53, "3 to warm up and 50");
    assert!(run.row("settle::untouched").measured >= 50 * run.fact("inner"));
    // While the inner one runs, its wish rules; else the outer one's.
    assert_eq!(run.row("settle::untouched").cache, "as-found");
    assert_eq!(run.row("settle::timed").cache, "cold");
}

#[test]
fn calls_on_other_threads_settle_too() {
    let run = run("threads");
    assert_eq!(run.fact("run unmet"), 0);
    for name in ["settle::timed", "settle::untouched"] {
        let row = run.row(name);
        assert!(row.fed.max(row.starved) >= 50, "{row:?}");
    }
}

#[test]
fn a_closure_that_never_waits() {
    let run = run("queue");
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::plain");
    assert_eq!((row.timed, row.in_flight), (run.fact("run calls"), 0));
}

#[test]
fn the_host_clock_settles_too() {
    let run = run_with("anywhere", &["cpu"]);
    assert_eq!(run.fact("run unmet"), 0);
    let row = run.row("settle::on_gpu_or_cpu");
    assert!(row.device == "host" && row.measured >= 50, "{row:?}");
}

/// One call is enough to see that.
#[test]
fn where_nothing_is_timed_nothing_is_waited_for() {
    let filtered = scenario("settle/anywhere", &[]).env("GPU_TIME_FILTER", "nobody");
    let filtered = filtered.warns("the filter leaves none of the ");
    let runs = [
        run_with("anywhere", &["off"]),
        run_with("back_to_back", &["off"]),
        filtered.untraced().run(),
        scenario("settle/anywhere", &[]).env("GPU_TIME", "off").reports_nothing().untraced().run(),
    ];
    for run in &runs {
        assert_eq!((run.fact("run calls"), run.fact("run unmet")), (1, 0));
    }
}

/// Back to back, a call takes little more than its kernels, and no time of its host's.
#[test]
fn calls_back_to_back() {
    let run = run("back_to_back");
    assert_eq!((run.fact("run calls"), run.fact("run unmet")), (51, 0));
    assert!(run.fact("replays") >= 50);
    let per_call_ns = run.fact("per_call_ns");
    assert!((15_000..20_000).contains(&per_call_ns), "{per_call_ns} ns");
    assert_eq!(run.fact("span_ns") / 50, per_call_ns);
    // Of each function one call was timed, and those that were captured were not.
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
fn what_cannot_be_captured_is_named() {
    let run = run("refused");
    let begin = "`graph of 4 calls`: ";
    for (name, why) in [
        ("waits", "the closure does what no capture allows, such as to wait or to allocate"),
        ("allocates", "the closure does what no capture allows, such as to wait or to allocate"),
        ("elsewhere", "the closure enqueued nothing on the stream"),
        ("unjoined", "the closure leaves work on another stream, which this one never meets"),
        ("null", "the NULL stream cannot be captured"),
        ("captured", "the stream was being captured already"),
    ] {
        let text = run.text(name);
        assert!(text.starts_with(&format!("{begin}{why}")), "{name}: {text}");
    }
    // Once as ever, and once in the capture: then it is ruined.
    assert_eq!((run.fact("waits calls"), run.fact("allocates calls")), (2, 2));
    assert_eq!((run.fact("elsewhere calls"), run.fact("null calls")), (5, 1));
    assert_eq!(run.fact("after"), 1, "the stream works");
}

#[test]
fn a_closure_that_unwinds_while_it_is_captured() {
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
    fn without_a_gpu_the_cpu_is_all_there_is() {
        let run = scenario("settle/anywhere", &["cpu"]).without_driver().run();
        assert_eq!(run.fact("run unmet"), 0);
        assert!(run.row("settle::on_gpu_or_cpu").measured >= 50);
    }

    /// Of the process most samples were alone, and of the run most were queued.
    #[test]
    fn a_run_is_relieved_of_the_bias_of_its_own_regime() {
        let run = run("regimes");
        let counted = [run.fact("before queued"), run.fact("run queued")];
        assert!(counted[0] == 0 && counted[1] > 250, "{counted:?}");
        let device = &run.report().devices[0];
        let [held, queued] = [device.event_held_empty_ns, device.event_queued_empty_ns];
        let bias = device.event_bias_ns.unwrap();
        assert_eq!(run.fact("before bias_ns") as f64, bias.round());
        let more = queued.unwrap() - held.unwrap();
        assert_eq!(run.fact("run bias_ns") as f64, (bias + more).round());
    }

    /// A pair of events around a hundred kernels, each with the gap that a graph leaves.
    #[test]
    fn a_replay_is_its_kernels_and_one_pair() {
        let run = run("back_to_back");
        let [node, plain] =
            [10_000, 5_000].map(|ns| (formula::spin_ns(ns) + 120).div_ceil(32) * 32);
        assert_eq!(run.fact("span_ns"), 1_280 + 50 * (node + plain));
    }

    #[test]
    fn a_driver_without_such_graphs() {
        let run = scenario("settle/back_to_back", &[]).without("cuGraphInstantiateWithFlags").run();
        assert_eq!((run.fact("run unmet"), run.found("replays")), (1, None));
    }

    /// Whatever fails, the run says so and goes no further.
    #[test]
    fn calls_of_the_driver_that_fail() {
        for call in [
            "cuStreamBeginCapture_v2:1",
            "cuGraphGetNodes:1",
            "cuGraphInstantiateWithFlags:1",
            "cuGraphLaunch:1",
            // The first comes when the memory of the flush's proof is given back.
            "cuStreamSynchronize:2",
        ] {
            let fault = format!("{call}=999");
            let run =
                scenario("settle/back_to_back", &[]).simulated(|sim| sim.faults(&fault)).run();
            assert_eq!((run.fact("run unmet"), run.found("replays")), (1, None), "{fault}");
        }
    }
}
