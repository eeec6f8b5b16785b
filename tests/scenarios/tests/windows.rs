//! Tests that windows show how busy the devices are, and with which work.

use std::time::Duration;

use crate::harness::report::Coverage;
use crate::harness::{Run, is_real, scenario};

/// Returns the first device's coverage.
#[track_caller]
fn coverage(run: &Run) -> &Coverage {
    let device = run.report().devices.iter().find(|device| device.id == "cuda:0");
    let coverage = device.and_then(|device| device.coverage.as_ref()).expect("there were windows");
    let known = if coverage.windows > 0 { 1.0 } else { 0.0 };
    assert!((coverage.busy + coverage.idle - known).abs() < 1e-9, "{coverage:?}");
    assert!(coverage.attributed <= coverage.busy + 1e-9, "{coverage:?}");
    coverage
}

/// Asserts that one third of the work is attributed, and that a single kernel accounts for the remainder.
#[track_caller]
fn assert_third_attributed(coverage: &Coverage) {
    let third = coverage.attributed / coverage.busy;
    assert!((third - 1.0 / 3.0).abs() < 0.02, "{coverage:?}");
    let [outside] = &coverage.outside()[..] else { panic!("{coverage:?}") };
    assert!(outside.name.contains("spin"), "{coverage:?}");
    assert!((outside.share - 2.0 / 3.0).abs() < 0.02, "{coverage:?}");
    let per_s = outside.count as f64 / (coverage.total_ns / 1e9);
    assert!((outside.per_s - per_s).abs() < 1e-6 * per_s, "{coverage:?}");
    let mean_ns = outside.total_ns / outside.count as f64;
    assert!((outside.median_ns.unwrap() - mean_ns).abs() < 0.1 * mean_ns, "{coverage:?}");
    // Those of functions are the same kernel.
    let [ours] = &coverage.kernels.iter().filter(|kernel| kernel.annotated).collect::<Vec<_>>()[..]
    else {
        panic!("{coverage:?}")
    };
    assert!((ours.share - 1.0 / 3.0).abs() < 0.02 && ours.name == outside.name, "{coverage:?}");
}

/// Returns the exact shares of the time for which the GPU was busy, and for which it ran kernels
/// launched by annotated functions. They come from the simulated driver's trace or, on a GPU, from
/// the nominal times.
fn exact(run: &Run) -> [f64; 2] {
    let (began, ended) = (run.fact("began_ns"), run.fact("ended_ns"));
    let share = |ns: u64| ns as f64 / (ended - began) as f64;
    if is_real() {
        let busy_ns = run.fact("busy_ns");
        return [share(busy_ns), share(busy_ns / 3)];
    }
    let is_of_run = |at: u64| (began..=ended).contains(&at);
    let commands = run.trace.commands().filter(|command| command.kind == "kernel");
    let in_run = commands.filter(|command| is_of_run(command.enqueued_ns));
    let times: Vec<u64> = in_run.map(|command| command.duration_ns).collect();
    // Kernels run for 40 µs outside annotated functions, and for 20 µs inside.
    let inside = times.iter().copied().filter(|&ns| ns < 30_000);
    [share(times.iter().sum()), share(inside.sum())]
}

/// At most four of the eighteen shares may be off by more than two errors, and none by more than
/// four. A correct runtime fails this test with a probability of 1 in 500.
#[test]
fn busy_share_is_exact_within_its_error() {
    let (mut outliers, mut figures) = (0, Vec::new());
    for share in ["0.3", "0.7", "0.95"] {
        for depth in ["1", "20", "100"] {
            let run = if is_real() {
                scenario("windows/busy", &[share, depth, "4ms/20ms"])
            } else {
                // Planned phases would begin at times that are real.
                scenario("windows/busy_in_steps", &[share, depth]).env("GPU_TIME_RECORD", "off")
            };
            let run = run.with_cupti().run();
            let coverage = coverage(&run);
            let [busy, attributed] = exact(&run);
            assert!(coverage.windows >= 10 && coverage.incomplete <= 1, "{coverage:?}");
            // Recorded launches take longer, so windows differ slightly from the time between
            // windows.
            let recording = if is_real() { 0.02 } else { 0.01 };
            let error = coverage.busy_error.unwrap() + recording;
            let attributed_error = coverage.attributed_error.unwrap() + recording;
            assert!(coverage.busy_error.unwrap() < 0.15, "{share} {depth}: {coverage:?}");
            for (found, truth, error) in
                [(coverage.busy, busy, error), (coverage.attributed, attributed, attributed_error)]
            {
                let off = (found - truth).abs();
                figures
                    .push(format!("{share} {depth}: {found:.4} ±{error:.4}, exactly {truth:.4}"));
                assert!(off <= 4.0 * error, "{figures:#?}");
                outliers += u32::from(off > 2.0 * error);
            }
            assert_third_attributed(coverage);
        }
    }
    println!("{figures:#?}");
    assert!(outliers <= 4, "{figures:#?}");
}

/// Its time is an estimate from the parts that were recorded.
#[test]
fn function_that_is_longer_than_phases_has_its_time() {
    let run = match is_real() {
        true => scenario("windows/around", &["real"]),
        // Planned phases would begin at times that are real.
        false => scenario("windows/around", &[]).env("GPU_TIME_RECORD", "off"),
    };
    let run = run.with_cupti().run();
    let (coverage, [busy, attributed]) = (coverage(&run), exact(&run));
    assert!(coverage.attributed > 0.95 * coverage.busy && coverage.outside().is_empty());
    let tree = &run.report().tree;
    let node = tree.iter().find(|node| node.name == "scenario::windows::whole").unwrap();
    // Virtual time passes faster than the time that phases stand for.
    let [share, error] = [node.self_ns, node.self_error_ns].map(|ns| ns / coverage.covered_ns);
    let truth = busy - attributed;
    assert!((share - truth).abs() <= 3.0 * error + 0.02, "{share} ±{error}, exactly {truth}");
    assert_eq!((node.recorded, node.calls), (0, 1.0), "{node:?}");
    assert!(run.stderr.contains(" scenario::windows::whole first"), "{}", run.stderr);
    assert!(tree.iter().all(|node| node.source != "windows"), "{tree:?}");
}

#[test]
fn launches_blocking_past_window_end_are_in_it() {
    let run = scenario("windows/full_queue", &[]).with_cupti().run();
    let coverage = coverage(&run);
    assert!(coverage.windows >= 3, "{coverage:?}");
    assert_eq!(coverage.incomplete, 0, "{coverage:?}");
}

#[test]
fn program_asks_for_windows() {
    let run = scenario("windows/asked_for", &[]).with_cupti().run();
    let coverage = coverage(&run);
    assert_eq!((coverage.windows, coverage.incomplete, coverage.busy_error), (2, 0, None));
    // The GPU is busy for half of the time while the program's thread runs.
    assert!(coverage.busy > 0.0 && coverage.busy < 0.7, "{coverage:?}");
    assert_third_attributed(coverage);
}

#[test]
fn windows_that_follow_closely_are_collected() {
    let run = scenario("windows/planned", &[]).with_cupti().run();
    assert!(run.fact("windows") > 0);
}

#[test]
fn calls_that_are_not_timed_account_for_their_work() {
    for arguments in [&[][..], &["async"]] {
        let run = scenario("windows/sampled", arguments).with_cupti().run();
        let coverage = coverage(&run);
        assert_eq!((coverage.windows, coverage.incomplete), (1, 0));
        assert!(coverage.busy > 0.0 && coverage.attributed == coverage.busy, "{coverage:?}");
        assert!(coverage.outside().is_empty(), "{coverage:?}");
    }
}

#[test]
fn windows_stand_for_the_time_with_a_context() {
    let run = scenario("windows/loading", &[]).with_cupti().run();
    let coverage = coverage(&run);
    let before_ns = run.report().process.wall_ns as f64 - coverage.covered_ns;
    assert!(coverage.windows == 1 && coverage.covered_ns >= coverage.total_ns, "{coverage:?}");
    assert!(before_ns >= 290e6, "{before_ns}: {coverage:?}");
}

/// The work before the request is in the functions' times.
#[test]
fn late_window_stands_for_the_time_before_it() {
    let run = scenario("windows/asked_late", &[]).with_cupti().run();
    let coverage = coverage(&run);
    assert!(coverage.windows == 1 && coverage.covered_ns >= 300e6, "{coverage:?}");
}

#[test]
fn signal_opens_a_window() {
    let run = scenario("windows/raised", &[]).with_cupti().run();
    assert!(coverage(&run).windows > 0);
    assert_third_attributed(coverage(&run));
}

/// Asserts that a window was opened, and that all work in it was unannotated.
#[track_caller]
fn assert_unattributed(run: &Run) {
    let coverage = coverage(run);
    assert!(coverage.windows >= 1, "{coverage:?}");
    assert!(coverage.busy > 0.0 && coverage.attributed == 0.0, "{coverage:?}");
    let [outside] = &coverage.outside()[..] else { panic!("{coverage:?}") };
    assert!(outside.name.contains("spin") && outside.share > 0.999, "{coverage:?}");
}

#[test]
fn program_without_annotated_calls_gets_a_window() {
    for when in ["early", "late", "planned"] {
        let run = scenario("windows/unannotated", &[when]).with_cupti().run();
        assert_unattributed(&run);
    }
}

#[test]
fn signal_before_the_first_gpu_call_opens_a_window() {
    let run = scenario("windows/raised_early", &["12"]).with_cupti().run();
    assert_unattributed(&run);
}

#[test]
fn window_does_not_create_a_context() {
    let run = scenario("windows/no_context", &[])
        .with_cupti()
        .warns("nothing was recorded: phases begin once")
        .run();
    assert_eq!(run.trace.calls().count(), 0);
}

#[test]
fn signal_while_off_does_not_end_the_process() {
    let off = scenario("windows/raised", &[]).with_cupti().env("GPU_TIME", "off");
    off.reports_nothing().complains("gpu-time: no phase: timing is off (`GPU_TIME=off`)").run();
}

#[test]
fn process_ends_during_a_window() {
    let limit = Duration::from_secs(8);
    let run = scenario("windows/end", &[]).with_cupti().timeout(limit).run();
    let coverage = coverage(&run);
    assert_eq!((coverage.windows, coverage.incomplete), (0, 1), "{coverage:?}");
}

/// The time for which the last report waits for something.
#[test]
fn end_of_the_process_is_not_part_of_the_run() {
    let run = scenario("windows/ends_inside", &[]).with_cupti().run();
    let coverage = coverage(&run);
    // It waits for 50 ms.
    assert!(coverage.covered_ns - coverage.total_ns < 40e6, "{coverage:?}");
}

#[test]
fn fork_leaves_the_window_to_the_parent() {
    let run = scenario("windows/fork", &[]).with_cupti().run();
    assert_eq!((coverage(&run).windows, coverage(&run).incomplete), (1, 0));
    assert_third_attributed(coverage(&run));
}

#[test]
fn fork_after_a_request_leaves_reports_to_the_parent() {
    let run = scenario("windows/fork_before_calls", &[])
        .with_cupti()
        .warns("nothing was recorded: phases begin once");
    let run = run.run();
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.site("windows::host_only").calls, 1);
}

#[test]
fn no_windows_unless_asked_for() {
    let run = scenario("windows/busy", &["0.5", "1"]).with_cupti().run();
    assert!(run.report().devices.iter().all(|device| device.coverage.is_none()));
}

mod simulated {
    use gpu_time_sim_cupti::{SimCupti, Version};

    use super::*;

    #[test]
    fn every_device_has_its_share() {
        let run = scenario("windows/devices", &[]).simulated(|sim| sim.devices(2)).with_cupti();
        let run = run.run();
        let found: Vec<_> =
            run.report().devices.iter().filter_map(|device| device.coverage.as_ref()).collect();
        let [first, second] = found[..] else { panic!("{found:?}") };
        assert!((first.busy / second.busy - 2.0).abs() < 0.1, "{found:?}");
        found.into_iter().for_each(assert_third_attributed);
    }

    #[test]
    fn device_first_used_during_window_is_shown() {
        let run = scenario("windows/late_device", &[]).simulated(|sim| sim.devices(2)).with_cupti();
        let run = run.run();
        let [_, second] = &run.report().devices[..] else { panic!("{:?}", run.report().devices) };
        assert!(second.coverage.as_ref().is_some_and(|found| found.busy > 0.0), "{second:?}");
    }

    /// CUPTI before 13.0 records all launches after the first window.
    #[test]
    fn endless_recording_does_not_fill_buffers() {
        let cupti = SimCupti::new(Version::V12_4);
        let run = scenario("windows/asked_for", &["100"]).on_cupti(cupti).run();
        let coverage = coverage(&run);
        assert_eq!((coverage.windows, coverage.incomplete), (2, 0), "{coverage:?}");
    }

    /// CUPTI cannot be switched on then.
    #[test]
    fn windows_while_code_is_loaded_are_missed() {
        let cupti = SimCupti::default().script("fragile");
        let run = scenario("windows/loads", &[]).on_cupti(cupti).run();
        assert!(coverage(&run).missed > 0, "{:?}", coverage(&run));
    }

    #[test]
    fn dropped_records_make_windows_incomplete() {
        let cupti = SimCupti::default().script("drop=7");
        let run = scenario("windows/asked_for", &[]).on_cupti(cupti);
        let run = run.warns("CUPTI dropped ").run();
        let coverage = coverage(&run);
        assert!(coverage.incomplete >= 1, "{coverage:?}");
        assert_eq!(coverage.windows + coverage.incomplete, 2, "{coverage:?}");
    }

    #[test]
    fn device_without_timed_calls_is_shown() {
        let run = scenario("windows/raised_early", &["12"]).with_cupti();
        let run = run.simulated(|sim| sim.devices(2)).run();
        let ids: Vec<_> = run.report().devices.iter().map(|device| &*device.id).collect();
        // The second device has no context.
        assert_eq!(ids, ["cuda:0", "host"]);
    }

    #[test]
    fn missing_cupti_is_noted_without_timed_calls() {
        let run = scenario("windows/raised_early", &["1"]).env("GPU_TIME_CUPTI", "/none");
        let run = run.complains("gpu-time: invalid value `/none`");
        let run = run.warns("invalid value `/none` for `GPU_TIME_CUPTI`").run();
        let why = run.report().process.kernels.as_deref().unwrap_or_default();
        assert!(why.starts_with("no libcupti "), "{why}");
    }

    #[test]
    fn missing_cupti_is_noted() {
        let run = scenario("windows/busy", &["0.5", "1"]).env("GPU_TIME_RECORD", "4ms/20ms");
        // The machine may have a CUPTI library.
        let run = run.env("GPU_TIME_CUPTI", "/none").complains("gpu-time: invalid value `/none`");
        let run = run.warns("invalid value `/none` for `GPU_TIME_CUPTI`").run();
        assert!(run.report().devices.iter().all(|device| device.coverage.is_none()));
        let notes = run.stderr.matches("no libcupti was found").count();
        assert_eq!(notes, 1, "{}", run.stderr);
    }
}

/// What CUPTI leaves behind is least if it has begun before the first context, and another tool may want it later.
#[test]
fn recorded_start_begins_before_the_context_and_gives_cupti_up() {
    for (how, record) in [("configured", None), ("by variable", Some("start:200ms"))] {
        let run = scenario("windows/start", &[how]).with_cupti().env("GPU_TIME_BUDGET", "5%");
        let run = run.complains("gpu-time: the requested phase cannot begin: CUPTI was given up");
        let run = record.into_iter().fold(run, |run, when| run.env("GPU_TIME_RECORD", when)).run();
        let series = || run.site("windows::timed").series.iter();
        assert!(series().map(|row| row.opened).sum::<u64>() > 0, "{how}");
        assert_eq!(run.report().process.kernels, None);
        assert!(coverage(&run).windows > 0);
        // What was recorded stands for the calls since, which have no other time.
        assert!(run.site("windows::timed").unsampled >= 10, "{how}");
        assert!(series().all(|row| row.device != "host"), "{how}");
        if is_real() {
            continue;
        }
        let first = |names: &[&str]| {
            let at = run
                .trace
                .calls()
                .position(|call| names.iter().any(|name| call.name.starts_with(name)));
            at.unwrap_or_else(|| panic!("{how}: no {names:?}"))
        };
        let context = first(&["cuDevicePrimaryCtxRetain", "cuCtxCreate"]);
        assert!(first(&["cuptiActivityEnable"]) < context, "{how}");
        assert!(first(&["cuptiUnsubscribe"]) > context, "{how}");
    }
}
