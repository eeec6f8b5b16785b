//! Tests for opened calls: their kernels, and the functions to which the kernels belong.

use crate::harness::report::{KernelTimes, Series};
use crate::harness::tree::paths;
use crate::harness::{Run, is_real, scenario};

/// The most by which CUPTI's time of a spin may exceed the requested time, in nanoseconds.
const OVER_NS: f64 = 1_500.0;

/// Returns a function's only row, with the kernel times of its opened calls.
fn opened<'a>(run: &'a Run, name: &str) -> (&'a Series, &'a KernelTimes) {
    let row = run.row(name);
    (row, &row.kernels)
}

/// Asserts that `ns` is the time of spins that take `expected` in total.
fn assert_time(ns: f64, expected: u64, kernels: u64) {
    let (least, most) = (expected as f64, expected as f64 + kernels as f64 * OVER_NS);
    // By its own clock, a GPU may take slightly less than requested.
    assert!(ns >= least * 0.999 && ns <= most, "{ns} ns for {expected}");
}

#[test]
fn kernels_belong_to_innermost_and_outer_functions() {
    let run = scenario("kernels/nested", &["20"]).with_cupti().run();
    for (name, calls, kernels, busy_ns, self_kernels, self_ns) in [
        ("kernels::outer", 20, 8, 160_000, 2, 20_000),
        ("kernels::inner", 40, 3, 70_000, 2, 60_000),
        ("kernels::leaf", 40, 1, 10_000, 1, 10_000),
    ] {
        let (row, times) = opened(&run, name);
        assert_eq!(row.clock, "kernels", "{name}");
        assert_eq!((row.timed, row.measured, row.opened, row.in_flight), (calls, 0, calls, 0));
        assert_eq!(times.kernels_per_call, Some(kernels as f64), "{name}");
        assert_time(times.busy_ns.as_ref().unwrap().median, busy_ns, kernels);
        assert_time(times.self_busy_ns.as_ref().unwrap().median, self_ns, self_kernels);
        assert!(times.span_ns.as_ref().unwrap().median >= times.busy_ns.as_ref().unwrap().median);
        assert!(times.host_ns.as_ref().unwrap().min > 0.0);
        assert_eq!(times.streams, Some(1));
        let [kernel] = &times.kernels[..] else { panic!("{name}: {:?}", times.kernels) };
        assert_eq!((kernel.name.as_str(), kernel.count), ("spin_ns", calls * kernels));
        assert_eq!((kernel.grid, kernel.block), ([1; 3], [1; 3]));
        assert_eq!(row.raw().median, times.busy_ns.as_ref().unwrap().median);
    }
    // The self times of all functions add up to the time of the outer function.
    let sum = |name: &str| opened(&run, name).1.self_busy_ns.as_ref().unwrap().sum;
    let whole = opened(&run, "kernels::outer").1.busy_ns.as_ref().unwrap().sum;
    let parts: f64 = ["kernels::outer", "kernels::inner", "kernels::leaf"].map(sum).iter().sum();
    assert!((parts - whole).abs() < 1e-6 * whole, "{parts} of {whole}");
}

#[test]
fn kernels_pending_at_exit_are_waited_for() {
    let mut pending = scenario("kernels/pending", &[]).with_cupti();
    if !is_real() {
        // A flush takes no simulated time by default, and nothing else advances the time at exit.
        pending = pending.simulated(|sim| sim.model("cost.cuptiActivityFlushAll=240_000"));
    }
    let run = pending.run();
    let (row, _) = opened(&run, "kernels::outer");
    assert_eq!((row.timed, row.opened, row.in_flight), (20, 20, 0));
}

#[test]
fn copies_and_memsets_are_recorded() {
    let run = scenario("kernels/memory", &[]).with_cupti().run();
    let (row, times) = opened(&run, "kernels::copies");
    assert_eq!((row.opened, times.kernels_per_call), (10, Some(0.0)));
    let mut names: Vec<_> =
        times.kernels.iter().map(|of| (of.name.as_str(), of.count, of.grid)).collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|of| (of.1, of.2) == (10, [0; 3])), "{names:?}");
    assert!(names[0].0.starts_with("[copy D") && names[1].0.starts_with("[copy H"), "{names:?}");
    assert!(names[2].0.starts_with("[memset"), "{names:?}");
    let (row, times) = opened(&run, "kernels::nothing");
    assert_eq!((row.opened, times.busy_ns.as_ref().unwrap().max), (5, 0.0));
}

#[test]
fn work_on_another_stream_is_named() {
    assert_elsewhere(&scenario("kernels/elsewhere", &[]).recorded().run());
}

/// Asserts that half of the launches of each call are on another stream.
fn assert_elsewhere(run: &Run) {
    let row = run.site("kernels::on_two_streams").rows(None).next().unwrap();
    let times = &row.kernels;
    assert_eq!((row.opened, times.streams, times.kernels_per_call), (10, Some(2), Some(2.0)));
    let [elsewhere] = &times.elsewhere[..] else { panic!("{:?}", times.elsewhere) };
    assert_eq!((elsewhere.name.as_str(), elsewhere.count), ("spin_ns", 10));
    assert_eq!(elsewhere.why, "other-stream");
    assert_time(elsewhere.total_ns, 300_000, 10);
}

#[test]
fn work_outside_of_bracketed_launches_is_named() {
    let run = scenario("kernels/after_stop", &[]).recorded().run();
    let row = run.site("kernels::launches_more").rows(None).next().unwrap();
    let times = &row.kernels;
    assert_eq!((row.opened, times.kernels_per_call), (10, Some(2.0)));
    let [elsewhere] = &times.elsewhere[..] else { panic!("{:?}", times.elsewhere) };
    assert_eq!((elsewhere.why.as_str(), elsewhere.count), ("after-stop", 10));
    assert_time(elsewhere.total_ns, 300_000, 10);
}

#[test]
fn work_between_fork_and_join_is_named() {
    let run = scenario("kernels/fork_join", &[]).recorded().run();
    let (row, times) = opened(&run, "kernels::forks_and_joins");
    assert_eq!((row.opened, times.streams, times.kernels_per_call), (10, Some(2), Some(4.0)));
    let [elsewhere] = &times.elsewhere[..] else { panic!("{:?}", times.elsewhere) };
    assert_eq!((elsewhere.name.as_str(), elsewhere.count), ("spin_ns", 20));
    assert_eq!(elsewhere.why, "other-stream");
    assert_time(elsewhere.total_ns, 600_000, 20);
    // The streams wait for each other, so nothing overlaps.
    assert_time(times.busy_ns.as_ref().unwrap().median, 80_000, 4);
}

/// CUPTI does not report on whose behalf a thread enqueues work.
#[test]
fn work_of_helper_thread_belongs_to_no_call() {
    let run = scenario("kernels/helper", &[]).with_cupti().run();
    let (row, times) = opened(&run, "kernels::hands_over");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (10, 0, Some(2.0)));
    assert_time(times.busy_ns.as_ref().unwrap().median, 20_000, 2);
    assert!(times.elsewhere.is_empty(), "{:?}", times.elsewhere);
    // An annotated function on the helper has its own opened calls.
    let (row, times) = opened(&run, "kernels::leaf");
    assert_eq!((row.opened, times.kernels_per_call), (10, Some(1.0)));
    let shown: u64 = run
        .report()
        .sites
        .iter()
        .flat_map(|site| &site.series)
        .map(|row| row.kernels.kernels.iter().map(|of| of.count).sum::<u64>())
        .sum();
    assert_eq!(shown, 30, "the helper's other kernels are nowhere");
}

#[test]
fn fork_inside_opened_call() {
    let run = scenario("kernels/fork_inside", &[]).with_cupti().run();
    let (row, times) = opened(&run, "kernels::hands_over_in_child");
    assert_eq!((row.timed, row.opened, times.kernels_per_call), (1, 1, Some(2.0)));
    assert_eq!(opened(&run, "kernels::outer").0.opened, 3);
    assert_eq!(run.site("kernels::nothing").calls, 0, "the child's calls are not the parent's");
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

/// A captured launch does not run, so there is no record to wait for.
#[test]
fn captured_launches_are_not_waited_for() {
    let run = scenario("kernels/captured", &[]).with_cupti().run();
    let of = |name: &str| run.row(&format!("kernels::{name}"));
    let counts = |name| (of(name).timed, of(name).opened, of(name).lost("capture"));
    // One kernel is before the capture, and the graph launches two.
    assert_eq!(counts("captures"), (5, 5, 0));
    assert_eq!(of("captures").kernels.kernels_per_call, Some(3.0));
    // One call is captured, with two calls each of `inner` and `leaf`.
    assert_eq!(counts("outer"), (1, 0, 1));
    assert_eq!(counts("inner"), (7, 5, 2));
    assert_eq!(counts("leaf"), (12, 5, 7));
    assert_eq!(of("inner").kernels.kernels_per_call, Some(3.0));
}

#[test]
fn captures_of_per_thread_streams_are_known() {
    let run = scenario("kernels/captured_per_thread", &[]).with_cupti().run();
    let row = run.row("kernels::captures");
    assert_eq!((row.opened, row.all_lost(), row.in_flight), (3, 0, 0));
    assert_eq!(row.kernels.kernels_per_call, Some(3.0));
    assert_eq!(run.row("kernels::leaf").lost("capture"), 3);
}

#[test]
fn recorded_calls_replace_brackets_and_agree_with_them() {
    let name = "kernels::by_events";
    let run = scenario("kernels/events", &[]).recorded().run();
    let recorded = run.row(name);
    assert_eq!((recorded.timed, recorded.measured, recorded.opened), (400, 0, 400));
    let busy = recorded.kernels.busy_ns.as_ref().unwrap().median;
    assert_time(busy, 30_000, 1);
    assert_eq!(recorded.cache, "cold");
    let row = run.row("kernels::first_and_some");
    assert_eq!(run.site("kernels::first_and_some").counts(), (400, 5, 0, 395));
    assert_eq!((row.measured, row.opened), (0, 395));
    // By default, functions on a stream need no records.
    let run = scenario("kernels/events", &[]).with_cupti().run();
    let by_events = run.row(name);
    assert_eq!((by_events.timed, by_events.measured, by_events.opened), (400, 400, 0));
    let net = by_events.net_ns.as_ref().unwrap().median;
    assert!((net - busy).abs() < 1_000.0, "{net} by events, {busy} by CUPTI");
    assert_eq!(by_events.cache, "cold");
}

/// Brackets and records take turns where some functions need the one and others the other, and each has some.
#[test]
fn calls_inside_brackets_are_recorded_in_phases() {
    let run = scenario("kernels/inside_events", &[]).with_cupti().run();
    let (outer, inner) = (run.row("kernels::around"), run.site("kernels::leaf"));
    assert_eq!((outer.timed, outer.measured + outer.opened), (50, 50));
    assert_eq!((inner.timed + inner.unsampled, inner.row().opened), (50, inner.timed));
    assert!(outer.measured > 0 && inner.timed > 0, "{outer:?} {inner:?}");
    let run = scenario("kernels/inside_events", &[]).recorded().run();
    let (outer, inner) = (run.row("kernels::around"), run.row("kernels::leaf"));
    assert_eq!((outer.opened, inner.opened), (50, 50));
}

#[test]
fn end_of_a_requested_phase_leaves_that_of_the_whole_run() {
    let run = scenario("kernels/asked_first", &[]).with_cupti().run();
    assert_eq!(run.row("kernels::deep").opened, 200);
}

/// What is recorded in phases stands for all calls, alone and inside other functions.
#[test]
fn totals_in_phases_are_within_their_errors() {
    let run = scenario("kernels/depths", &[]).in_phases().untraced().run();
    let site = run.site("kernels::deep");
    let row = site.row();
    assert_eq!((row.opened, site.timed + site.unsampled), (site.timed, 4_000));
    // 2,000 calls take 10 µs and as many 200 µs.
    let paths = paths(&run);
    for (path, ns) in [("deep", 20e6), ("around_deep/deep", 400e6)] {
        let node = paths[path];
        let error = 4.0 * node.self_error_ns + 0.01 * ns;
        assert!((node.self_ns - ns).abs() < error, "{path}: {node:?}");
        assert!(node.self_error_ns < 0.5 * ns, "{path}: {node:?}");
    }
}

#[test]
fn threads_open_calls_at_once() {
    let run = scenario("kernels/threads", &[]).with_cupti().run();
    let (row, times) = opened(&run, "kernels::outer");
    assert_eq!((row.opened, times.kernels_per_call), (200, Some(8.0)));
    assert_eq!(opened(&run, "kernels::inner").0.opened, 400);
    assert_eq!(times.kernels[0].count, 1_600, "launches of another thread belong to no call");
}

#[test]
fn futures_are_attributed_while_polled() {
    let run = scenario("kernels/async", &[]).with_cupti().run();
    let (row, times) = opened(&run, "kernels::async_outer");
    assert_eq!((row.opened, times.kernels_per_call), (20, Some(4.0)));
    assert_time(times.busy_ns.as_ref().unwrap().median, 80_000, 4);
    assert_time(times.self_busy_ns.as_ref().unwrap().median, 20_000, 2);
    let (row, times) = opened(&run, "kernels::async_inner");
    assert_eq!((row.opened, times.kernels_per_call), (20, Some(2.0)));
    assert_time(times.busy_ns.as_ref().unwrap().median, 60_000, 2);
}

#[test]
fn futures_keep_records_that_come_while_they_wait() {
    let run = scenario("kernels/async", &["report"]).with_cupti().run();
    for (function, kernels) in [("kernels::async_outer", 4.0), ("kernels::async_inner", 2.0)] {
        let (row, times) = opened(&run, function);
        assert_eq!((row.opened, times.kernels_per_call), (20, Some(kernels)), "{function}");
    }
}

#[test]
fn function_without_a_stream_settles() {
    let run = scenario("kernels/settle", &[]).with_cupti().run();
    assert_eq!(run.fact("unmet"), 0);
    assert!(run.fact("settled") >= 6);
    let percent = run.fact("percent");
    assert!((90..=110).contains(&percent), "{percent}");
}

#[test]
fn host_clock_serves_where_kernels_are_off() {
    let off = scenario("kernels/nested", &["3"]).with_cupti().env("GPU_TIME_RECORD", "off");
    let run = off.run();
    let row = run.row("kernels::outer");
    assert_eq!((row.clock.as_str(), row.measured, row.opened), ("host", 3, 0));
    let is_loaded = run.trace.calls().any(|call| call.name.starts_with("cupti"));
    assert!(!is_loaded, "CUPTI is not even looked for");
    assert!(!is_real() || run.report().process.cupti_version.is_none());
}

mod simulated {
    use gpu_time_sim_cupti::{SimCupti, Version};
    use gpu_time_sim_driver::formula::peer_copy_ns;

    use super::*;
    use crate::harness::Scenario;

    fn scripted(script: &str) -> Scenario {
        let cupti = SimCupti::new(Version::V13_0).script(script);
        scenario("kernels/nested", &["60"]).on_cupti(cupti)
    }

    /// Each of these scripts delays or reorders records, but loses none.
    #[test]
    fn records_in_any_order_are_matched() {
        for script in ["reversed,records=7", "late=3,records=9", "records=5", "reversed,late=2"] {
            let run = scripted(script).run();
            for (name, calls, kernels) in [("outer", 60, 8.0), ("inner", 120, 3.0)] {
                let (row, times) = opened(&run, &format!("kernels::{name}"));
                assert_eq!((row.opened, row.all_lost()), (calls, 0), "{script}");
                assert_eq!(times.kernels_per_call, Some(kernels), "{script}");
            }
        }
    }

    /// The record of a graph's first kernel comes long before that of its last one.
    #[test]
    fn slow_graph_is_waited_for() {
        let cupti = SimCupti::new(Version::V13_0).script("records=1");
        let run = scenario("kernels/slow_graph", &[]).on_cupti(cupti).run();
        let (row, times) = opened(&run, "kernels::launches_graph");
        assert_eq!((row.opened, row.all_lost()), (3, 0));
        assert_eq!(times.kernels_per_call, Some(3.0));
        assert!(times.busy_ns.as_ref().unwrap().min > 8e8, "{:?}", times.busy_ns);
    }

    #[test]
    fn lost_records_lose_their_call_alone() {
        for (script, warning) in [
            ("drop=50", Some("CUPTI dropped")),
            ("zero=50", Some("CUPTI gave ")),
            ("lose=50", None),
        ] {
            let mut scenario = scripted(script);
            if let Some(warning) = warning {
                scenario = scenario.warns(warning);
            }
            let run = scenario.run();
            let (row, times) = opened(&run, "kernels::outer");
            assert_eq!((row.timed, row.opened + row.lost("records")), (60, 60), "{script}");
            // One in 50 of 480 records is affected.
            assert!((5..=10).contains(&row.lost("records")), "{script}: {:?}", row.lost);
            assert_eq!(times.kernels_per_call, Some(8.0), "{script}");
            // Each lost call is due to a single record.
            let zero_times = if script == "zero=50" { row.lost("records") } else { 0 };
            assert_eq!(times.zero_times, zero_times, "{script}");
        }
    }

    #[test]
    fn every_supported_version_is_read() {
        for version in
            [Version::V11_8, Version::V12_4, Version::V13_0, Version::V13_2, Version::V13_5]
        {
            let run = scenario("kernels/nested", &["5"]).on_cupti(SimCupti::new(version)).run();
            let (row, times) = opened(&run, "kernels::outer");
            assert_eq!((row.opened, times.kernels_per_call), (5, Some(8.0)), "{version:?}");
            assert_eq!(run.report().process.cupti_version, Some(version.number()));
        }
    }

    #[test]
    fn other_versions_and_other_tools_are_named() {
        for (cupti, why) in [
            (SimCupti::new(Version::V10_2), "before CUDA 11.8"),
            (SimCupti::new(Version::V99), "99"),
            (SimCupti::new(Version::V13_0).script("other=exclusive"), "another tool"),
            (SimCupti::new(Version::V13_0).without("cuptiActivityEnable"), "cuptiActivityEnable"),
        ] {
            let run = scenario("kernels/nested", &["3"]).on_cupti(cupti).run();
            let row = run.row("kernels::outer");
            assert_eq!((row.clock.as_str(), row.measured), ("host", 3), "{why}");
            let said = run.report().process.kernels.clone().unwrap_or_default();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn functions_on_streams_keep_their_events_beside_another_tool() {
        let cupti = SimCupti::default().script("other=exclusive");
        let run =
            scenario("kernels/events", &[]).on_cupti(cupti).env("GPU_TIME_RECORD", "on").run();
        let row = run.row("kernels::first_and_some");
        assert_eq!((row.clock.as_str(), row.opened, row.all_lost()), ("events", 0, 0));
        assert_eq!((row.timed, row.measured), (395, 395));
        let said = run.report().process.kernels.clone().unwrap_or_default();
        assert!(said.contains("another tool"), "{said}");
    }

    /// The default streams of all GPUs have the same handle.
    #[test]
    fn work_on_default_stream_of_another_gpu_is_named() {
        let run = scenario("kernels/default_streams", &[]).simulated(|sim| sim.devices(2));
        assert_elsewhere(&run.recorded().run());
    }

    /// The driver cannot name its device any more.
    #[test]
    fn call_that_destroys_its_context_is_on_its_device() {
        let run = scenario("kernels/own_context", &[]).simulated(|sim| sim.devices(2));
        let run = run.with_cupti().run();
        let (row, _) = opened(&run, "kernels::in_own_context");
        assert_eq!((row.device.as_str(), row.opened, row.all_lost()), ("cuda:1", 10, 0));
    }

    #[test]
    fn call_on_two_gpus_is_one_row_with_copy() {
        const BYTES: u64 = 1 << 20;
        for version in [Version::V12_4, Version::V13_0, Version::V13_5] {
            let run = scenario("kernels/two_gpus", &[&BYTES.to_string()])
                .simulated(|sim| sim.devices(2))
                .on_cupti(SimCupti::new(version))
                .run();
            let (row, times) = opened(&run, "kernels::on_both");
            assert_eq!((row.device.as_str(), row.opened, row.all_lost()), ("cuda:0", 10, 0));
            assert_eq!(times.kernels_per_call, Some(2.0));
            let copy = times.kernels.iter().find(|work| work.name == "[copy PtoP]").unwrap();
            assert_eq!((copy.count, copy.total_ns), (10, (10 * peer_copy_ns(BYTES)) as f64));
            let spins = times.kernels.iter().find(|work| work.name == "spin_ns").unwrap();
            assert_eq!((spins.count, times.kernels.len()), (20, 2));
            // Time during which both GPUs work counts for each of them.
            let by_device = &run.report().tree[0].self_ns_by_device;
            assert_eq!(by_device.len(), 2, "{by_device:?}");
            assert_eq!(by_device.values().sum::<f64>(), copy.total_ns + spins.total_ns);
            assert!(by_device["cuda:1"] >= 300_000.0, "{by_device:?}");
        }
    }

    #[test]
    fn several_tools_share_from_13_3_on() {
        let cupti = SimCupti::new(Version::V13_5).script("other=shared");
        let run = scenario("kernels/nested", &["3"]).on_cupti(cupti).run();
        assert_eq!(opened(&run, "kernels::outer").0.opened, 3);
    }

    #[test]
    fn missing_library_is_named_once() {
        let run = scenario("kernels/nested", &["3"]).simulated(|sim| sim).run();
        let said = run.report().process.kernels.clone().unwrap_or_default();
        assert!(said.contains("GPU_TIME_CUPTI"), "{said}");
        assert_eq!(run.row("kernels::outer").clock, "host");
    }

    #[test]
    fn many_calls_use_the_buffers_again() {
        let run = scenario("kernels/many", &["20000"]).untraced().with_cupti().run();
        let (row, times) = opened(&run, "kernels::leaf");
        assert_eq!((row.opened, row.all_lost()), (20_000, 0));
        assert_eq!(times.kernels[0].count, 20_000);
    }
}
