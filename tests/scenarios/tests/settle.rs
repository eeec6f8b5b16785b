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
    let runs = [
        run_with("anywhere", &["off"]),
        scenario("settle/anywhere", &[]).env("GPU_TIME_FILTER", "nobody").untraced().run(),
        scenario("settle/anywhere", &[]).env("GPU_TIME", "off").reports_nothing().untraced().run(),
    ];
    for run in &runs {
        assert_eq!((run.fact("run calls"), run.fact("run unmet")), (1, 0));
    }
}

mod simulated {
    use super::*;

    #[test]
    fn without_a_gpu_the_cpu_is_all_there_is() {
        let run = scenario("settle/anywhere", &["cpu"]).without_driver().run();
        assert_eq!(run.fact("run unmet"), 0);
        assert!(run.row("settle::on_gpu_or_cpu").measured >= 50);
    }
}
