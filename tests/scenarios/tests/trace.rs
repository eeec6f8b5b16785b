//! The trace for viewers: what was timed, in its place in time.

use crate::harness::scenario;

/// Every bracket is there, on its stream and under its call.
#[test]
fn brackets_lie_on_their_streams() {
    let run = scenario("exact/fed", &[]).shows().run();
    let events = run.events();
    events.check_report(run.report());
    for (name, brackets) in [("exact::one", 30), ("exact::three #2", 30), ("exact::body", 30)] {
        let found = events.of(name);
        assert_eq!(found.len(), brackets, "{name}");
        assert!(found.iter().all(|slice| slice.row.starts_with("stream 0x")), "{found:?}");
        assert!(found.iter().all(|slice| slice.process.starts_with("cuda:0 ")), "{found:?}");
        assert!(found.iter().all(|slice| slice.text("cache") == "as-found"), "{found:?}");
    }
    let one = events.of("exact::one");
    let fed = one.iter().filter(|slice| slice.text("feeding") == "fed").count();
    assert_eq!(fed as u64, run.row("exact::one").fed);
    assert_eq!(events.arrows, events.brackets.len());
    assert!(events.calls.iter().all(|slice| slice.row == "main"));
    assert_eq!(events.calls.len(), 4 * 30 + 2 * 10);
}

/// A bracket inside of another lies inside of it on the row.
#[test]
fn nested_brackets_share_a_row() {
    let run = scenario("fed/nested", &[]).shows().run();
    let events = run.events();
    events.check_report(run.report());
    for (outer, inner) in events.of("fed::outer").iter().zip(events.of("fed::queued")) {
        assert_eq!(outer.row, inner.row);
        assert!(outer.begin_ns <= inner.begin_ns && inner.end_ns <= outer.end_ns);
        assert_eq!(outer.args["nested"], true);
    }
    assert!(events.brackets.iter().all(|slice| !slice.row.contains("overlapping")));
}

/// Threads that share a stream have brackets across each other's, which no row can hold.
#[test]
fn threads_share_a_stream() {
    for name in ["threads/one_stream", "streams/special"] {
        let run = scenario(name, &[]).shows().run();
        let events = run.events();
        events.check_report(run.report());
        assert_eq!(events.arrows, events.brackets.len(), "{name}");
    }
}

/// Calls on threads, and calls that begin and end anywhere.
#[test]
fn calls_lie_on_their_threads() {
    for name in ["scopes/futures", "scopes/panics", "threads/short", "barriers/kinds"] {
        let run = scenario(name, &[]).shows();
        let run = if name == "scopes/panics" { run.panics() } else { run }.run();
        run.events().check_report(run.report());
        let timed: u64 = run.report().sites.iter().map(|site| site.timed).sum();
        assert_eq!(run.events().calls.len() as u64, timed, "{name}");
        assert!(run.events().calls.iter().all(|call| !call.is("running")), "{name}");
    }
}

/// A call that has not returned is there up to now.
#[test]
fn a_call_is_still_running() {
    let run = scenario("exit/code_inside", &[]).exits(7).shows().run();
    let running: Vec<_> = run.events().calls.iter().filter(|call| call.is("running")).collect();
    assert!(running.len() == 1 && running[0].name.ends_with("exit::body"), "{running:?}");
    run.events().check_report(run.report());
}

/// Each report has a trace of all that was before it.
#[test]
fn a_trace_is_written_again() {
    let run = scenario("options/looks", &[]).reports(2).shows().run();
    run.events().check_report(run.report());
    assert_eq!(run.events().of("options::delayed").len(), 20);
}

/// What was kept for one that is asked for no more is forgotten.
#[test]
fn a_trace_begins_anew() {
    let run = scenario("options/traced", &[]).shows().run();
    assert_eq!(run.row("options::delayed").measured, 18);
    let events = run.events();
    assert_eq!((events.of("options::delayed").len(), events.calls.len()), (5, 5 * 7));
    assert_eq!(events.other["brackets"].as_u64(), Some(events.brackets.len() as u64));
    assert_eq!(events.arrows, events.brackets.len());
}

/// It may be much that was kept, and calls on other threads do not wait until it is freed.
#[test]
fn a_trace_ends_while_others_call() {
    let run = scenario("trace/ends", &[]).run();
    // The calls and the brackets.
    assert_eq!((run.fact("freed"), run.fact("stuck")), (2, 0));
}

#[test]
fn the_last_brackets_are_kept() {
    let by_program = scenario("exact/fed", &["50"]);
    let by_environment = scenario("exact/fed", &["70"]).env("GPU_TIME_TRACE_LAST", "50");
    for scenario in [by_program, by_environment] {
        let run = scenario
            .shows()
            .complains(
                "gpu-time: the trace has the last 50 of 200 brackets, and 150 were dropped; ",
            )
            .run();
        let events = run.events();
        events.check_report(run.report());
        assert_eq!((events.calls.len(), events.brackets.len()), (50, 50));
        assert!(!events.of("exact::delayed").is_empty());
    }
}

/// Nobody knows in which stream a graph was replayed.
#[test]
fn replays_of_graphs_have_no_place() {
    let run = scenario("graph/watched", &[])
        .shows()
        .complains("gpu-time: the trace leaves out samples whose place in time is not known: ")
        .run();
    run.events().check_report(run.report());
    assert!(run.events().other["unplaced"].as_u64() > Some(0), "{}", run.events().other);
}

mod simulated {
    use super::*;

    /// Nothing is shown to end before it began.
    #[test]
    fn the_clock_steps_back() {
        for at in ["130_000_000", "150_000_000"] {
            let model = format!("host_back_at_ns={at},host_back_ns=125_000_000");
            let run = scenario("exact/fed", &[]).simulated(|sim| sim.model(&model)).shows();
            let run = run.complains("gpu-time: the trace leaves out samples").run();
            run.events().check_report(run.report());
        }
    }

    #[test]
    fn brackets_lie_where_the_model_has_them() {
        for name in ["exact/fed", "exact/starved", "fed/nested", "streams/several", "fed/queue"] {
            let run = scenario(name, &[]).simulated(|sim| sim).shows().run();
            run.events().check_report(run.report());
            run.events().check_model(&run.trace);
        }
    }
}
