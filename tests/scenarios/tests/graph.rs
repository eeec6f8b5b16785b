//! Tests for launches in graphs: replays are timed, and graphs keep their shape.

use crate::harness::scenario;

#[test]
fn replays_timed_in_all_capture_modes() {
    for mode in ["global", "thread_local", "relaxed"] {
        for (use_before, replays) in [("first", 200), ("used", 20)] {
            let arguments = [mode, use_before, &replays.to_string()];
            let run = scenario("graph/replay", &arguments).run();
            // Two launches, and two event records around one of them.
            assert_eq!((run.fact("nodes"), run.fact("raw_nodes")), (4, 4), "{mode}, {use_before}");
            let before = u64::from(use_before == "used");
            let node = run.site("graph::node");
            assert_eq!(node.counts(), (3 + before, 0, 0, 3 + before));
            let graph = node.in_graphs(0);
            assert_eq!(graph.brackets(), (replays + 10, replays + 10, 0, 0), "{graph:?}");
            // One graph begins with the timed launch; in the other one, another launch precedes it.
            assert_eq!((graph.starved, graph.fed), (replays, 10));
            assert_eq!((graph.nested, graph.measure.as_str()), (0, "launch"));
            assert_eq!((graph.cache.as_str(), graph.clock.as_str()), ("as-found", "events"));
            assert!(graph.raw().median > 20_000.0, "{graph:?}");
            let streams: u64 = node.rows(None).map(|row| row.measured).sum();
            assert_eq!((streams, node.total(|row| row.all_lost())), (1 + before, 0));

            let without = run.site("graph::without");
            assert_eq!(without.counts(), (3 + before, 0, 0, 3 + before));
            assert_eq!(without.row().lost("capture"), 2);
            assert!(without.series.iter().all(|row| !row.graph));
            assert_eq!(run.report().warnings(), [""; 0]);
        }
    }
}

#[test]
fn timed_stream_calls_poll_graph_nodes() {
    let run = scenario("graph/polled", &[]).run();
    let seen = run.site("graph::node").in_graphs(0).measured;
    assert!((3..=320).contains(&seen), "{seen}");
    assert_eq!(run.row("graph::replayed").measured, 320);
}

#[test]
fn sample_never_mixes_two_replays() {
    let run = scenario("graph/concurrent_reports", &[]).run();
    let graph = run.site("graph::node").in_graphs(0);
    assert!((5..=10_000).contains(&graph.measured) && graph.all_lost() == 0, "{graph:?}");
    // Each of the five nodes runs for 20 µs, so a time of 100 µs would be that of a whole replay.
    assert!(graph.raw().min > 20_000.0 && graph.raw().max < 50_000.0, "{graph:?}");
}

#[test]
fn graph_destroyed_before_read() {
    let run = scenario("graph/destroyed", &[]).run();
    let node = run.site("graph::node");
    assert_eq!(node.counts(), (52, 0, 0, 52));
    let graph = node.in_graphs(0);
    assert_eq!(graph.brackets(), (50, 50, 0, 0), "{graph:?}");
    assert_eq!(node.series.len(), 1, "there must be no other row");
}

#[test]
fn graph_destroyed_during_replay() {
    let run = scenario("graph/in_flight", &[]).run();
    let graph = run.site("graph::node").in_graphs(0);
    assert!((1..=40).contains(&graph.measured) && graph.all_lost() == 0, "{graph:?}");
    assert!(graph.raw().min > 20_000.0 && graph.raw().max < 1e6, "{graph:?}");
}

#[test]
fn recaptured_graph_keeps_its_shape() {
    let run = scenario("graph/update", &[]).run();
    let node = run.site("graph::node");
    assert_eq!(node.counts(), (12, 0, 1, 11));
    assert_eq!(node.in_graphs(0).brackets(), (10, 10, 0, 0));
    // Without the `graph` key, calls are skipped while timing is off.
    assert_eq!(run.site("graph::without").counts(), (11, 0, 5, 6));
}

#[test]
fn first_capture_decides_on_nodes() {
    let run = scenario("graph/off_first", &[]).run();
    let node = run.site("graph::node");
    assert_eq!(node.counts(), (4, 0, 1, 3));
    assert_eq!(node.total(|row| u64::from(row.graph)), 0);
    assert_eq!(node.row().lost("capture"), 3);
}

/// While timing is off, a call evaluates its stream only as long as this can make a difference.
#[test]
fn off_evaluates_stream_until_first_capture() {
    let run = scenario("graph/off_queries_stream", &[]).run();
    assert_eq!(["undecided", "decided", "on"].map(|when| run.fact(when)), [2, 0, 1]);
    assert_eq!(run.site("graph::querying").counts(), (5, 0, 4, 1));
}

#[test]
fn warmup_does_not_change_graph() {
    let run = scenario("graph/warmup", &[]).run();
    let warmed = run.site("graph::warmed");
    assert_eq!(warmed.counts(), (408, 300, 0, 108));
    assert_eq!(warmed.in_graphs(0).brackets(), (4, 4, 0, 0));
    assert_eq!(warmed.row().measured, 104);
}

#[test]
fn graph_launched_on_two_streams() {
    let run = scenario("graph/streams", &[]).run();
    assert_eq!(run.site("graph::node").in_graphs(0).brackets(), (100, 100, 0, 0));
}

#[test]
fn capture_begins_or_ends_mid_call() {
    let run = scenario("graph/mid_call", &[]).run();
    let partly = run.site("graph::partly");
    assert_eq!(partly.counts(), (3, 0, 0, 3));
    // The first call's sum lacks a launch. The other calls' sums were never started.
    assert_eq!(partly.row().brackets(), (1, 0, 0, 1));
    assert_eq!(partly.row().lost("capture"), 1);
    let (first, second) = (partly.in_graphs(0), partly.in_graphs(1));
    assert_eq!((first.brackets(), first.lost("capture")), ((2, 1, 0, 1), 1));
    assert_eq!(second.brackets(), (1, 1, 0, 0));
    assert_eq!(partly.launch(0).brackets(), (1, 1, 0, 0));
    assert_eq!(partly.launch(1).brackets(), (2, 2, 0, 0));
}

#[test]
fn nested_node_is_marked() {
    let run = scenario("graph/nested", &[]).run();
    assert_eq!(run.fact("nodes"), 6);
    let within = run.site("graph::within");
    let rows = [0, 1].map(|launch| within.in_graphs(launch));
    assert!(rows.iter().all(|row| row.brackets() == (10, 10, 0, 0)), "{rows:?}");
    let mut nested = rows.map(|row| row.nested);
    nested.sort_unstable();
    assert_eq!(nested, [0, 10]);
}

/// A graph also keeps its shape if there are no more events for it.
#[test]
fn more_nodes_than_events() {
    let run = scenario("graph/many_nodes", &[]).untraced().run();
    let node = run.site("graph::node");
    assert_eq!(node.counts(), (8_400, 0, 0, 8_400));
    assert!(node.in_graphs(0).lost("events") >= 8_400 - 8_192, "{:?}", node.series);
}

mod simulated {
    use gpu_time_sim_driver::formula;

    use crate::harness::timeline::near;
    use crate::harness::{Run, scenario};

    #[test]
    fn replay_times_match_formula() {
        let run = scenario("graph/replay", &["global", "first", "20"]).run();
        let row = run.site("graph::node").in_graphs(0);
        // In a graph, the next node follows a kernel closely.
        let expected = (formula::spin_ns(20_000) + 120).next_multiple_of(32) + 1_280;
        near(row.raw().min, expected as f64, "the fastest replay");
        near(row.raw().max, expected as f64, "the slowest replay");
    }

    #[test]
    fn events_are_reused() {
        let run = scenario("graph/destroyed", &[]).run();
        let pairs = run.trace.calls_of("cuUserObjectCreate").count();
        assert_eq!(pairs, 52);
        let recorded: std::collections::BTreeSet<_> = run
            .trace
            .calls_of("cuEventRecordWithFlags")
            .filter_map(|call| call.args.get("hEvent")?.as_u64())
            .collect();
        // Two pairs are enough: one is read for the last time when the next one is needed.
        assert!(recorded.len() <= 4, "{}", recorded.len());
    }

    #[test]
    fn failed_launch_is_lost() {
        let run = scenario("graph/failing", &[]).simulated(|sim| sim).run();
        let may_fail = run.site("graph::may_fail");
        assert_eq!(may_fail.counts(), (24, 0, 0, 24));
        let rows: Vec<_> = may_fail.series.iter().filter(|row| row.graph).collect();
        let sum = |part: fn(&crate::harness::report::Series) -> u64| {
            rows.iter().map(|row| part(row)).sum::<u64>()
        };
        assert_eq!((sum(|row| row.lost("failed")), sum(|row| row.all_lost())), (3, 3));
        assert_eq!(sum(|row| row.measured), 21);
        assert_eq!(kernels(&run), 21);
    }

    fn kernels(run: &Run) -> u64 {
        run.trace.kernels("spin_ns").filter(|kernel| kernel.graph).count() as u64
    }

    /// Whatever fails, the program's captures stay intact, which the scenario checks, and every
    /// captured kernel runs.
    #[test]
    fn runtime_faults_leave_captures_intact() {
        for function in [
            "cuEventCreate",
            "cuEventRecordWithFlags",
            "cuGraphRetainUserObject",
            "cuStreamGetCaptureInfo_v2",
            "cuStreamIsCapturing",
            "cuUserObjectCreate",
        ] {
            // The first events are created together with the context.
            let first = if function == "cuEventCreate" { 60 } else { 1 };
            for code in [1, 2, 999] {
                for nth in [format!("{first}"), format!("{}", first + 3), format!("{first}+")] {
                    let fault = format!("{function}:{nth}={code}");
                    let run = scenario("graph/failing", &[]).simulated(|sim| sim.faults(&fault));
                    let run = run.run();
                    assert_eq!(kernels(&run), 21, "{fault}");
                    let may_fail = run.site("graph::may_fail");
                    assert_eq!(may_fail.counts(), (24, 0, 0, 24), "{fault}");
                    assert_eq!(run.report().total(|row| row.in_flight), 0, "{fault}");
                }
            }
        }
    }

    #[test]
    fn failed_release_loses_only_its_events() {
        let faults = "cuGraphRetainUserObject:2+=1;cuUserObjectRelease:*=1";
        let run = scenario("graph/failing", &[]).simulated(|sim| sim.faults(faults)).run();
        assert_eq!(kernels(&run), 21);
        let row = run.site("graph::may_fail").in_graphs(1);
        assert!(row.measured >= 1 && row.lost("driver") > 0, "{row:?}");
    }

    #[test]
    fn driver_without_graph_functions() {
        for symbol in ["cuUserObjectCreate", "cuGraphRetainUserObject", "cuEventRecordWithFlags"] {
            let run = scenario("graph/failing", &[]).without(symbol).run();
            let may_fail = run.site("graph::may_fail");
            assert_eq!(may_fail.total(|row| u64::from(row.graph)), 0, "{symbol}");
            let lost: u64 = may_fail.rows(None).map(|row| row.lost("capture")).sum();
            assert_eq!((lost, kernels(&run)), (24, 21), "{symbol}");
        }
    }

    #[test]
    fn driver_with_newer_function_name() {
        let run = scenario("graph/failing", &[]).without("cuStreamGetCaptureInfo_v2").run();
        let rows = run.site("graph::may_fail").series.iter().filter(|row| row.graph);
        assert_eq!(rows.map(|row| row.measured).sum::<u64>(), 21);
    }

    #[test]
    fn context_destroyed_with_its_graphs() {
        let run = scenario("graph/reset", &[]).simulated(|sim| sim).run();
        assert_eq!(run.site("graph::node").in_graphs(0).brackets(), (1, 1, 0, 0));
        assert_eq!(run.trace.notes("use_after_destroy").count(), 0);
    }

    /// Graphs launched by kernels may not contain event records, and a capture cannot know that its
    /// graph will be launched this way.
    #[test]
    fn device_launched_graph_rejects_nodes() {
        let run = scenario("graph/device_launch", &[]).simulated(|sim| sim).run();
        const NOT_SUPPORTED: u64 = 801;
        assert_eq!((run.fact("node"), run.fact("without")), (NOT_SUPPORTED, 0));
        let node = run.site("graph::node");
        assert_eq!((node.counts(), node.in_graphs(0).measured), ((2, 0, 0, 2), 1));
        assert_eq!(run.report().warnings(), [""; 0]);
    }

    #[test]
    fn no_nodes_while_off() {
        let failing = || scenario("graph/failing", &[]).simulated(|sim| sim);
        let filtered = failing()
            .env("GPU_TIME_FILTER", "nothing::*")
            .warns("the filter matches none of the ")
            .run();
        assert_eq!(filtered.site("graph::may_fail").counts(), (24, 0, 24, 0));
        let off = failing().env("GPU_TIME", "off").reports_nothing().run();
        for run in [filtered, off] {
            assert_eq!(
                (run.trace.calls_of("cuEventRecordWithFlags").count(), kernels(&run)),
                (0, 21)
            );
        }
    }
}
