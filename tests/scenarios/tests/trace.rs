//! Tests for the Chrome trace, which shows timed calls and brackets on a time axis.

use crate::harness::{chrome_trace::Slice, scenario};

/// Every bracket is present, on its stream and connected to its call.
#[test]
fn brackets_on_stream_rows() {
    let run = scenario("exact/fed", &[]).chrome_trace().run();
    let trace = run.chrome_trace();
    trace.check_report(run.report());
    for (name, brackets) in [("exact::one", 30), ("exact::three #2", 30), ("exact::body", 30)] {
        let found = trace.of(name);
        assert_eq!(found.len(), brackets, "{name}");
        assert!(found.iter().all(|slice| slice.row.starts_with("stream 0x")), "{found:?}");
        assert!(found.iter().all(|slice| slice.process.starts_with("cuda:0 ")), "{found:?}");
        assert!(found.iter().all(|slice| slice.text("cache") == "as-found"), "{found:?}");
    }
    let one = trace.of("exact::one");
    let fed = one.iter().filter(|slice| slice.text("feeding") == "fed").count();
    assert_eq!(fed as u64, run.row("exact::one").fed);
    assert_eq!(trace.arrows, trace.brackets.len());
    assert!(trace.calls.iter().all(|slice| slice.row == "main"));
    assert_eq!(trace.calls.len(), 4 * 30 + 2 * 10);
}

/// A nested bracket is inside its outer one on the same row.
#[test]
fn nested_brackets_share_row() {
    let run = scenario("fed/nested", &[]).chrome_trace().run();
    let trace = run.chrome_trace();
    trace.check_report(run.report());
    for (outer, inner) in trace.of("fed::outer").iter().zip(trace.of("fed::queued")) {
        assert_eq!(outer.row, inner.row);
        assert!(outer.begin_ns <= inner.begin_ns && inner.end_ns <= outer.end_ns);
        assert_eq!(outer.args["nested"], true);
    }
    assert!(trace.brackets.iter().all(|slice| !slice.row.contains("overlapping")));
}

/// Threads that share a stream have overlapping brackets, which do not fit into one row.
#[test]
fn threads_sharing_a_stream() {
    for name in ["threads/one_stream", "streams/special"] {
        let run = scenario(name, &[]).chrome_trace().run();
        let trace = run.chrome_trace();
        trace.check_report(run.report());
        assert_eq!(trace.arrows, trace.brackets.len(), "{name}");
    }
}

/// Flushes and holds are shown in front of their brackets, and warm-up calls on their threads.
#[test]
fn gaps_are_explained() {
    let run = scenario("options/keys", &[]).chrome_trace().run();
    let trace = run.chrome_trace();
    // The first call is not held.
    for (function, name, first) in
        [("options::hot", "hold", "hold"), ("options::cold", "flush and hold", "flush")]
    {
        let path = format!("scenario::{function}");
        let of = trace.preparations.iter().filter(|found| found.text("function") == path);
        let found: Vec<_> = of.collect();
        let is_known = |found: &&&Slice| found.name == name || found.name == first;
        assert_eq!(found.iter().filter(is_known).count(), found.len(), "{found:?}");
        assert!(found.iter().any(|found| found.name == name), "{found:?}");
        for preparation in found {
            let its = trace.brackets.iter().filter(|bracket| {
                bracket.args["call"] == preparation.args["call"] && bracket.row == preparation.row
            });
            assert!(its.clone().any(|bracket| bracket.begin_ns == preparation.end_ns));
        }
    }
    let warmups: u64 = run.report().sites.iter().map(|site| site.warmup).sum();
    assert_eq!(trace.warmups.len() as u64, warmups);
    assert!(warmups > 0);
}

/// The trace has every timed call, including calls that begin and end on different threads.
#[test]
fn calls_on_thread_rows() {
    for name in ["scopes/futures", "scopes/panics", "threads/short", "barriers/kinds"] {
        let run = scenario(name, &[]).chrome_trace();
        let run = if name == "scopes/panics" { run.panics() } else { run }.run();
        run.chrome_trace().check_report(run.report());
        let timed: u64 = run.report().sites.iter().map(|site| site.timed).sum();
        assert_eq!(run.chrome_trace().calls.len() as u64, timed, "{name}");
        assert!(run.chrome_trace().calls.iter().all(|call| !call.is("running")), "{name}");
    }
}

/// A call that has not returned is shown as lasting until the trace is written.
#[test]
fn running_call_lasts_to_end() {
    let run = scenario("exit/code_inside", &[]).exits(7).chrome_trace().run();
    let running: Vec<_> =
        run.chrome_trace().calls.iter().filter(|call| call.is("running")).collect();
    assert!(running.len() == 1 && running[0].name.ends_with("exit::body"), "{running:?}");
    run.chrome_trace().check_report(run.report());
}

/// Each report writes a trace of everything before it.
#[test]
fn trace_rewritten_by_each_report() {
    let run = scenario("options/snapshots", &[]).reports(2).chrome_trace().run();
    run.chrome_trace().check_report(run.report());
    assert_eq!(run.chrome_trace().of("options::delayed").len(), 20);
}

/// Switching the trace off discards its events.
#[test]
fn trace_restarts_empty() {
    let run = scenario("options/traced", &[]).chrome_trace().run();
    assert_eq!(run.row("options::delayed").measured, 18);
    let trace = run.chrome_trace();
    assert_eq!((trace.of("options::delayed").len(), trace.calls.len()), (5, 5 * 7));
    assert_eq!(trace.other["brackets"].as_u64(), Some(trace.brackets.len() as u64));
    assert_eq!(trace.arrows, trace.brackets.len());
}

/// Calls on other threads do not wait until the trace's buffers are freed.
#[test]
fn calls_continue_while_trace_is_freed() {
    let run = scenario("trace/switched_off", &[]).run();
    // One buffer for calls and one for brackets.
    assert_eq!((run.fact("freed"), run.fact("stuck")), (2, 0));
}

#[test]
fn trace_keeps_last_brackets() {
    let by_program = scenario("exact/fed", &["50"]);
    let by_environment = scenario("exact/fed", &["70"]).env("GPU_TIME_TRACE_LAST", "50");
    for scenario in [by_program, by_environment] {
        let run = scenario
            .chrome_trace()
            .complains(
                "gpu-time: the trace has the last 50 of 200 brackets, and 150 were dropped; ",
            )
            .run();
        let trace = run.chrome_trace();
        trace.check_report(run.report());
        assert_eq!((trace.calls.len(), trace.brackets.len()), (50, 50));
        assert!(!trace.of("exact::delayed").is_empty());
    }
}

/// The stream used to replay a graph is unknown.
#[test]
fn graph_replays_are_unplaced() {
    let run = scenario("graph/polled", &[])
        .chrome_trace()
        .complains("gpu-time: the trace leaves out samples that cannot be placed in time: ")
        .run();
    run.chrome_trace().check_report(run.report());
    assert!(
        run.chrome_trace().other["unplaced"].as_u64() > Some(0),
        "{}",
        run.chrome_trace().other
    );
}

/// The work of recorded calls is shown on the streams that ran it, and inside its calls.
#[test]
fn kernels_of_opened_calls() {
    let run = scenario("kernels/traced", &[]).recorded().chrome_trace().run();
    let trace = run.chrome_trace();
    trace.check_report(run.report());
    let is_measured = |work: &Slice| work.text("function").ends_with("measured");
    let row = trace.works.iter().find(|work| is_measured(work)).unwrap().row.clone();
    // Each call of `waits` has nine kernels, and the memset of new memory.
    assert_eq!(trace.works.len(), 110);
    let functions = [("outer", 20), ("inner", 40), ("leaf", 20), ("waits", 20), ("measured", 10)];
    for (name, count) in functions.map(|(name, n)| (format!("scenario::kernels::{name}"), n)) {
        let works: Vec<_> = trace.works.iter().filter(|of| of.text("function") == name).collect();
        assert_eq!(works.len(), count, "{name}");
        for work in works {
            assert_eq!(trace.call_of(work).name, name);
            let is_kernel = work.name == "spin_ns";
            assert!(is_kernel || work.name.starts_with("[memset"), "{work:?}");
            assert_eq!(work.args["grid"].is_array(), is_kernel, "{work:?}");
            let is_on_other = name.ends_with("waits") && is_kernel;
            assert_eq!(work.row == row, !is_on_other, "{work:?}");
            assert!(work.row.starts_with("stream 0x"), "{work:?}");
        }
    }
    let waits: Vec<_> =
        trace.calls.iter().filter(|call| call.name == "scenario::kernels::waits").collect();
    for work in &trace.works {
        let error_ns = work.number("alignment_error_ns") as u64;
        assert!(error_ns < 1_000, "{work:?}");
        assert!(work.begin_ns + error_ns >= trace.call_of(work).begin_ns, "{work:?}");
        let is_around = |call: &&&Slice| {
            call.begin_ns <= work.begin_ns + error_ns && work.end_ns <= call.end_ns + error_ns
        };
        let calls = usize::from(!is_measured(work));
        assert_eq!(waits.iter().filter(is_around).count(), calls, "{work:?}");
    }
    // Slices of a stream are shown in the order in which the work was enqueued.
    let mut on_stream: Vec<_> = trace.works.iter().filter(|work| work.row == row).collect();
    on_stream.sort_by_key(|work| work.begin_ns);
    let order: Vec<_> = on_stream.iter().map(|work| work.text("function")).collect();
    let of_waits = ["outer", "inner", "leaf", "inner", "inner", "leaf", "inner", "outer", "waits"];
    for round in order.chunks(10) {
        let expected = of_waits.into_iter().chain(["measured"]);
        assert!(round.iter().zip(expected).all(|(work, name)| work.ends_with(name)), "{round:?}");
    }
}

mod simulated {
    use super::*;

    #[test]
    fn kernels_match_model() {
        for (name, works) in [("traced", 110), ("nested", 160), ("memory", 30), ("fork_join", 40)] {
            let run = scenario(&format!("kernels/{name}"), &["20"]).recorded();
            let run = run.chrome_trace().run();
            run.chrome_trace().check_report(run.report());
            run.chrome_trace().check_recorded(&run.trace);
            assert_eq!(run.chrome_trace().works.len(), works, "{name}");
        }
    }

    #[test]
    fn trace_keeps_last_kernels() {
        let run = scenario("kernels/nested", &["20"]).with_cupti().chrome_trace();
        let run = run.env("GPU_TIME_TRACE_LAST", "10").complains(
            "gpu-time: the trace has the last 10 of 160 kernels, copies and memsets, and 150 were",
        );
        let run = run.run();
        assert_eq!(run.chrome_trace().works.len(), 10);
        assert_eq!(run.chrome_trace().other["dropped_activities"], 150);
    }

    /// No slice may end before it begins.
    #[test]
    fn clock_stepping_back() {
        for at in ["130_000_000", "150_000_000"] {
            let model = format!("host_back_at_ns={at},host_back_ns=125_000_000");
            let run = scenario("exact/fed", &[]).simulated(|sim| sim.model(&model)).chrome_trace();
            let run = run.complains("gpu-time: the trace leaves out samples").run();
            run.chrome_trace().check_report(run.report());
        }
    }

    #[test]
    fn brackets_match_model() {
        for name in ["exact/fed", "exact/starved", "fed/nested", "streams/several", "fed/queue"] {
            let run = scenario(name, &[]).simulated(|sim| sim).chrome_trace().run();
            run.chrome_trace().check_report(run.report());
            run.chrome_trace().check_model(&run.trace);
        }
    }
}
