//! Tests for every kind of thread.

use crate::harness::{Run, scenario};

/// Asserts that all calls to both functions were measured, on any thread.
#[track_caller]
fn assert_measured(run: &Run, timed: u64, body: u64) {
    let site = run.site("threads::timed");
    assert_eq!(site.counts(), (timed, 0, 0, timed));
    let rows = |launch| site.rows(launch).map(|row| row.brackets());
    for launch in [None, Some(0)] {
        let (begun, measured) =
            rows(launch).fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        assert_eq!((begun, measured), (timed, timed), "{:?}", site.series);
    }
    if body > 0 {
        assert_eq!(run.row("threads::body").brackets(), (body, body, 0, 0));
    }
}

#[test]
fn own_streams() {
    assert_measured(&scenario("threads/own_streams", &[]).run(), 800, 800);
}

#[test]
fn one_stream() {
    assert_measured(&scenario("threads/one_stream", &[]).run(), 400, 400);
}

#[test]
fn thread_per_call() {
    assert_measured(&scenario("threads/short", &[]).run(), 100, 0);
}

#[test]
fn rayon() {
    assert_measured(&scenario("threads/rayon", &[]).run(), 200, 200);
}

#[test]
fn calls_during_thread_teardown() {
    assert_measured(&scenario("threads/teardown", &[]).run(), 2 * 2 * 3 + 5, 2 * 2 * 3);
}

#[test]
fn calls_during_main_thread_teardown() {
    assert_measured(&scenario("threads/teardown_of_main", &[]).run(), 5 + 3, 3);
}

/// A bracket inside another one on the same stream is detected, regardless of their threads.
#[test]
fn nested_bracket_of_another_thread() {
    let run = scenario("threads/inside", &[]).run();
    let around = run.row("threads::around");
    assert_eq!(around.brackets(), (20, 20, 0, 0));
    assert_eq!(around.nested, 10, "{around:?}");
    let timed = run.site("threads::timed");
    for launch in [None, Some(0)] {
        let rows: Vec<_> =
            timed.rows(launch).map(|row| (row.cache.as_str(), row.measured, row.nested)).collect();
        // One call came first, ten were beside a bracket on another stream, and ten were inside a
        // bracket.
        assert_eq!(rows, [("as-found", 10, 0), ("cold", 11, 0)]);
    }
}

/// The first thousand calls are not timed, regardless of the thread.
#[test]
fn shared_warmup() {
    let run = scenario("threads/warmup", &["uneven"]).run();
    assert_eq!(run.site("threads::warms_up").counts(), (2_000, 1_000, 0, 1_000));
    // A thread reserves several warm-up calls at a time and gives the unused ones back when it
    // ends.
    let run = scenario("threads/warmup", &["even"]).run();
    let site = run.site("threads::warms_up");
    assert_eq!(site.counts(), (2_000, 1_000, 0, 1_000));
}
