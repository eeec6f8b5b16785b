//! Tests for opened calls in programs that fail, unwind, recurse, end threads, and drop pending futures.

use crate::harness::report::{KernelTimes, Series};
use crate::harness::tree::{assert_time, paths};
use crate::harness::{Run, scenario};

fn run(name: &str) -> Run {
    scenario(name, &[]).with_cupti().run()
}

/// Returns a function's row in the report, with the kernel times of its opened calls.
fn opened<'a>(run: &'a Run, name: &str) -> (&'a Series, &'a KernelTimes) {
    let row = run.row(&format!("opened::{name}"));
    (row, &row.kernels)
}

/// A launch that fails never has a record.
#[test]
fn failed_launch_is_not_waited_for() {
    let run = run("opened/failing");
    assert_eq!(run.fact("in_flight"), 0);
    let (row, times) = opened(&run, "tries");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (10, 0, Some(2.0)));
}

/// A copy of zero bytes has no record either.
#[test]
fn empty_copies_are_not_waited_for() {
    let run = run("opened/empty");
    let (row, times) = opened(&run, "copies_nothing");
    assert_eq!((row.opened, row.all_lost(), times.kernels.len()), (10, 0, 1));
}

/// The runtime's own variables may be destroyed before those of the program.
#[test]
fn calls_of_ending_threads_are_opened_or_unfinished() {
    let run = run("opened/teardown");
    let rows: Vec<_> = run.site("opened::at_end").rows(None).collect();
    let count = |of: fn(&Series) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let [opened, unfinished, lost] =
        [count(|row| row.opened), count(|row| row.lost("unfinished")), count(|row| row.all_lost())];
    assert_eq!((opened + unfinished, lost), (20, unfinished));
    assert!(opened > 0 && unfinished > 0, "{opened} opened, {unfinished} unfinished");
}

/// No phase begins while the program runs.
#[test]
fn first_call_after_warmup_is_recorded_outside_of_phases() {
    let run = scenario("opened/first", &[]).with_cupti().env("GPU_TIME_RECORD", "1ms/3600s").run();
    for (name, unsampled) in [("at_once", 2), ("after_warmup", 1)] {
        let (row, _) = opened(&run, name);
        assert_eq!((row.timed, row.opened), (1, 1), "{name}");
        assert_eq!(run.site(&format!("opened::{name}")).unsampled, unsampled, "{name}");
    }
}

/// Each launch in an opened call takes 0.45 µs longer. This cost counts in full, like the cost of preparing
/// a bracket, so it is part of the device time.
#[test]
fn budget_counts_launches_of_opened_calls() {
    let long = scenario("opened/long", &[]).with_cupti().untraced();
    let run = long.env("GPU_TIME_BUDGET", "99%").run();
    let (row, _) = opened(&run, "launches_often");
    assert_eq!(row.opened, 21);
    let counted_ns = run.report().process.budget.as_ref().unwrap().device_ns;
    let launches = run.fact("launches");
    assert!((450 * launches..=600 * launches).contains(&counted_ns), "{counted_ns} of {launches}");
}

#[test]
fn unwinding_loses_only_inner_function() {
    let run = run("opened/unwinding");
    let (row, times) = opened(&run, "catches");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (5, 0, Some(3.0)));
    let (row, _) = opened(&run, "unwinds");
    assert_eq!((row.timed, row.opened, row.lost("failed")), (10, 0, 10));
}

#[test]
fn recursive_function_includes_its_inner_calls() {
    let run = run("opened/recursive");
    let (row, times) = opened(&run, "recurs");
    // Four nested calls have 4 + 3 + 2 + 1 kernels.
    assert_eq!((row.opened, times.kernels_per_call), (40, Some(2.5)));
    let [busy, own] = [&times.busy_ns, &times.self_busy_ns].map(|of| of.as_ref().unwrap().sum);
    // All kernels take the same time.
    assert!((own / busy - 0.4).abs() < 0.05, "{own} of {busy}");
}

/// They are nested deeper than a path of the call tree is long.
#[test]
fn functions_that_call_each_other_have_their_own_times() {
    let run = run("opened/alternating");
    for name in ["ping", "pong"] {
        let (row, times) = opened(&run, name);
        assert_eq!((row.opened, row.all_lost()), (500, 0), "{name}");
        let tree = &run.report().tree;
        let paths = || tree.iter().filter(|node| node.name.ends_with(name));
        assert_eq!(paths().map(|node| node.recorded).sum::<u64>(), 500, "{name}");
        let all_ns: f64 = paths().map(|n| n.calls * n.per_call.as_ref().unwrap().busy_ns).sum();
        for (of_paths, of_row) in [
            (paths().map(|node| node.self_ns).sum(), &times.self_busy_ns),
            (all_ns, &times.busy_ns),
        ] {
            let of_row = of_row.as_ref().unwrap().sum;
            assert!((of_paths / of_row - 1.0).abs() < 1e-6, "{of_paths} of {of_row}: {name}");
        }
    }
}

/// An opened call keeps a few thousand inner calls. If there are more, the runtime records earlier
/// ones while the opened call runs, so only the opened call itself is lost.
#[test]
fn functions_beyond_limit_of_opened_call_are_recorded() {
    let run = scenario("opened/crowded", &[]).recorded().run();
    let (row, times) = opened(&run, "one_of_many");
    assert_eq!((row.timed, row.opened, row.all_lost()), (5_000, 5_000, 0));
    assert_eq!(times.kernels_per_call, Some(1.0));
    let (row, _) = opened(&run, "crowds");
    assert_eq!((row.timed, row.lost("long")), (1, 1));
    let paths = paths(&run);
    let (outer, inner) = (paths["crowds"], paths["crowds/one_of_many"]);
    assert_eq!((outer.self_ns, inner.calls), (0.0, 5_000.0));
    assert_time(outer.inclusive_ns, 5e6, 5_000.0);
}

/// The program is one call with more launches than an opened call keeps at once.
#[test]
fn functions_inside_a_long_call_are_recorded() {
    let run = scenario("opened/long_outer", &[]).with_cupti().untraced().run();
    assert!(run.fact("steps") > 600, "{}", run.fact("steps"));
    assert_eq!(run.fact("steps") + run.fact("steps_in_flight"), 700);
    assert_eq!(run.fact("in_flight"), 1);
    let (row, times) = opened(&run, "step");
    assert_eq!((row.timed, row.opened, times.kernels_per_call), (700, 700, Some(100.0)));
    let (row, _) = opened(&run, "trains");
    assert_eq!((row.timed, row.opened, row.lost("long")), (1, 0, 1));
    // The tree has the launches that the outermost function made itself.
    let paths = paths(&run);
    let (outer, inner) = (paths["trains"], paths["trains/step"]);
    assert_eq!((outer.recorded, inner.recorded), (0, 700));
    assert_time(outer.self_ns, 700.0 * 10_000.0, 700.0);
    assert_time(inner.inclusive_ns, 70_000.0 * 1_000.0, 70_000.0);
}

/// CUPTI's buffers have no room for so many records, and no call that ends makes the runtime collect them.
#[test]
fn records_are_collected_before_a_call_has_ended() {
    let run = scenario("opened/first_and_only", &["100000"]).with_cupti().untraced().run();
    let (row, times) = opened(&run, "launches_all");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (1, 0, Some(100_000.0)));
}

/// Asserts that no record of the calls in `opened/beside_others` is missing.
fn assert_complete_beside_others(launches: &str) {
    let run = scenario("opened/beside_others", &[launches]).with_cupti().untraced().run();
    for (name, calls, kernels) in [("alternates", 1, 1_000.0), ("step", 10, 100.0)] {
        let (row, times) = opened(&run, name);
        let counts = (row.opened, row.all_lost(), times.kernels_per_call);
        assert_eq!(counts, (calls, 0, Some(kernels)), "{name}");
    }
}

#[test]
fn launches_of_other_threads_do_not_fill_the_buffers() {
    assert_complete_beside_others("10000");
}

/// There would be no room for the records of so many launches until the call ends.
#[test]
fn launches_of_other_threads_do_not_push_out_records() {
    assert_complete_beside_others("40000");
}

#[test]
fn long_calls_keep_each_other_s_records() {
    let run = scenario("opened/long_at_once", &["5", "60000"]).with_cupti().untraced().run();
    let (row, times) = opened(&run, "launches_all");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (5, 0, Some(60_000.0)));
}

/// A call that has not ended is lost, but the calls inside it that have ended are not.
#[test]
fn exit_inside_an_opened_call() {
    let run = run("opened/exit_inside");
    let (row, _) = opened(&run, "trains");
    assert_eq!((row.timed, row.in_flight, row.lost("unfinished")), (1, 0, 1));
    let (row, _) = opened(&run, "step");
    assert_eq!((row.timed, row.opened), (5, 5), "{:?}", row.lost);
}

/// Unfinished calls on another thread or in a suspended future are lost, with the calls inside them.
#[test]
fn exit_beside_an_opened_call() {
    let run = run("opened/exit_beside");
    for (name, calls) in [("trains", 1), ("step", 5), ("in_parts", 1)] {
        let (row, _) = opened(&run, name);
        assert_eq!((row.timed, row.lost("unfinished")), (calls, calls), "{name}: {row:?}");
    }
}

/// Calls that end while the process exits may lack their last launches, so they are lost. Those that are recorded
/// have all of their kernels.
#[test]
fn exit_amid_opened_calls() {
    for _ in 0..10 {
        let exits = scenario("opened/exit_amid", &[]).with_cupti().untraced().keeps_counting();
        let run = exits.run();
        let (row, times) = opened(&run, "launches_eight");
        assert!(row.opened > 0 && row.all_lost() <= 4, "{row:?}");
        assert_eq!(times.kernels[0].count, 8 * row.opened, "{row:?}");
    }
}

/// Before the process ends, the thread inside the call hands over the inner calls that have ended.
#[test]
fn signal_inside_an_opened_call() {
    let run = scenario("opened/killed", &[]).with_cupti().untraced().keeps_counting();
    let run = run.killed_by(libc::SIGTERM).run();
    let (row, _) = opened(&run, "step");
    // Steps that begin after the thread has handed over the others are lost.
    let ended = run.fact("ended steps");
    assert!(0 < ended && ended <= row.opened, "{ended}: {row:?}");
    assert_eq!(row.lost("unfinished"), row.all_lost());
    let (row, _) = opened(&run, "goes_on_for_ever");
    assert_eq!((row.timed, row.lost("unfinished")), (1, 1));
}

/// Calls that other threads begin and end meanwhile do not end the wait for that thread.
#[test]
fn exit_inside_a_long_call_beside_short_calls() {
    let run = scenario("opened/exit_inside_beside_short", &[]).with_cupti().untraced();
    let run = run.keeps_counting().run();
    let (row, _) = opened(&run, "step");
    // Steps that begin after the thread has handed over the others are lost.
    let ended = run.fact("ended steps");
    assert!(0 < ended && ended <= row.opened, "{ended}: {row:?}");
    assert_eq!(paths(&run)["goes_on_for_ever/step"].recorded, row.opened);
}

/// When a thread ends inside a call, the call's recording ends too. Otherwise, it would prevent calibrations.
#[test]
fn forgotten_guard_is_lost_when_its_thread_ends() {
    let run = run("opened/forgotten");
    let row = run.row("forgets");
    assert_eq!((row.timed, row.lost("unfinished")), (1, 1));
    let devices = &run.report().devices;
    assert!(devices.iter().any(|device| device.event_bias_ns.is_some()), "{devices:?}");
}

#[test]
fn guard_that_outlives_the_one_around_it_is_unfinished() {
    let run = run("opened/guards");
    let row = run.row("first guard");
    assert_eq!((row.timed, row.opened, row.kernels.kernels_per_call), (10, 10, Some(2.0)));
    // The first one begins before the device is known.
    let lost = run.site("second guard").rows(None).map(|row| row.lost("unfinished"));
    assert_eq!(lost.sum::<u64>(), 10);
    // Its launches are known, and not how long it took.
    let paths = paths(&run);
    let second = paths["first guard/second guard"];
    assert_eq!((second.recorded, second.calls), (0, 0.0));
    assert!(second.self_ns > 0.0 && second.per_call.is_none(), "{second:?}");
}

#[test]
fn leaked_guards_do_not_stop_opening() {
    let run = scenario("opened/leaked", &[]).recorded().run();
    let (row, _) = opened(&run, "step");
    assert_eq!((row.timed, row.opened), (20, 20));
    assert_eq!(paths(&run)["step"].calls, 20.0);
}

#[test]
fn open_functions_are_in_flight() {
    let run = run("opened/in_flight");
    assert_eq!((run.fact("outer"), run.fact("inner")), (1, 3));
    let (row, _) = opened(&run, "trains");
    assert_eq!((row.timed, row.opened), (1, 1));
}

/// The cost of timing inner functions is charged to the opened call around them.
#[test]
fn budget_counts_functions_inside_opened_calls() {
    let run = scenario("opened/inner_cost", &[]).with_cupti().untraced();
    let run = run.env("GPU_TIME_BUDGET", "99%").run();
    assert_eq!(opened(&run, "calls_many").0.opened, 21);
    let counted_ns = run.report().process.budget.as_ref().unwrap().device_ns;
    // Each of 21,000 functions takes more than a tenth of a microsecond.
    assert!(counted_ns > 21_000 * 100, "{counted_ns}");
}

/// A process distinguishes 4,096 kernels and shapes, and a series 255.
#[test]
fn kernels_beyond_the_most_shapes_count_without_their_shape() {
    let run = run("opened/shapes");
    let (row, times) = opened(&run, "in_shapes");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (42, 0, Some(100.0)));
    let [kernel] = &times.kernels[..] else { panic!("{:?}", times.kernels) };
    assert_eq!((kernel.name.as_str(), kernel.count, kernel.grid), ("spin_ns", 4_200, [0; 3]));
    let (row, times) = opened(&run, "in_new_shapes");
    assert_eq!((row.opened, row.all_lost(), times.kernels_per_call), (1, 0, Some(4.0)));
    let [kernel] = &times.kernels[..] else { panic!("{:?}", times.kernels) };
    assert_eq!((kernel.name.as_str(), kernel.count), ("spin_ns", 4));
    assert_eq!((kernel.grid, kernel.block), ([0; 3], [0; 3]));
    let busy_ns = times.busy_ns.as_ref().unwrap().sum;
    assert!((busy_ns / kernel.total_ns - 1.0).abs() < 0.05, "{busy_ns} of {kernel:?}");
}

/// Returns a function's row. A second row, without a device, counts calls that waited in vain for
/// other threads to finish loading code before the runtime knew of any context.
#[track_caller]
fn opened_on_device<'a>(run: &'a Run, name: &str) -> (&'a Series, &'a KernelTimes) {
    let rows = &run.site(&format!("opened::{name}")).series;
    let (on_device, unknown): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.device != "cuda:?");
    let [row] = on_device[..] else { panic!("{rows:?}") };
    for row in unknown {
        assert_eq!((row.opened, row.all_lost()), (0, row.lost("records")), "{row:?}");
    }
    (row, &row.kernels)
}

/// Asserts that all calls in `opened/threads` were opened, except for calls that waited in vain, for at most a
/// millisecond, for other threads to finish loading. A call that is lost before its context is known has no
/// device. Returns the number of opened calls.
#[track_caller]
fn assert_opened_or_lost(run: &Run) -> u64 {
    let rows = &run.site("opened::on_thread").series;
    let sum = |of: fn(&Series) -> u64| rows.iter().map(of).sum::<u64>();
    let (opened, lost) = (sum(|row| row.opened), sum(|row| row.lost("records")));
    assert_eq!((sum(|row| row.timed), opened + lost), (640, 640), "{rows:?}");
    assert_eq!(sum(Series::all_lost), lost, "{rows:?}");
    opened
}

#[test]
fn threads_end_with_records_pending() {
    let run = run("opened/threads");
    let opened = assert_opened_or_lost(&run);
    assert!(opened >= 320, "{opened}");
}

/// CUPTI 13 loses callbacks that are switched off and on while many threads launch.
#[test]
fn launches_are_seen_however_often_calls_were_opened() {
    let run =
        scenario("opened/in_turns", &[]).with_cupti().env("GPU_TIME_RECORD", "1ms/10ms").run();
    let (row, times) = opened_on_device(&run, "on_thread");
    assert!(row.opened > 100, "{row:?}");
    assert_eq!(times.kernels_per_call, Some(1.0));
}

#[test]
fn keys_have_kernels_of_their_own() {
    let run = run("opened/keyed");
    let rows = &run.site("opened::by_key").series;
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| (row.key.clone().unwrap(), row.opened, row.kernels.kernels_per_call.unwrap()))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let of = |key: &str, opened, kernels| (key.to_owned(), opened, kernels);
    assert_eq!(found, [of("1", 3, 1.0), of("2", 2, 2.0), of("3", 1, 3.0)]);
}

/// Work that a future launches while it is polled inside another call belongs to that call.
#[test]
fn future_polled_inside_another_call_is_lost() {
    let run = run("opened/futures");
    let (row, times) = opened(&run, "goes_on");
    assert_eq!((row.opened, times.kernels_per_call), (5, Some(2.0)));
    let (row, times) = opened(&run, "polls");
    assert_eq!((row.opened, times.kernels_per_call), (5, Some(3.0)));
    let (row, _) = opened(&run, "in_parts");
    assert_eq!((row.timed, row.opened), (15, 0), "{:?}", row.lost);
    assert_eq!((row.lost("cancelled"), row.lost("records")), (5, 10), "{:?}", row.lost);
}

/// CUPTI may crash if kernels are switched on or off while memsets are recorded.
#[test]
fn memsets_of_other_threads_are_left_alone() {
    let run = run("opened/during_memsets");
    let (row, times) = opened(&run, "sets");
    assert_eq!(row.opened + row.lost("records"), run.site("opened::sets").calls, "{:?}", row.lost);
    let memsets: u64 =
        times.kernels.iter().filter(|of| of.name.starts_with("[memset")).map(|of| of.count).sum();
    assert_eq!((times.kernels_per_call, memsets), (Some(1.0), row.opened));
}

mod simulated {
    use gpu_time_sim_cupti::{SimCupti, Version};

    use super::*;

    /// CUPTI may hang if it is switched or flushed while code is loaded.
    #[test]
    fn nothing_is_switched_or_flushed_while_code_is_loaded() {
        let cupti = SimCupti::default().script("fragile");
        let run = scenario("opened/threads", &[]).on_cupti(cupti).run();
        assert!(assert_opened_or_lost(&run) > 0);
    }

    /// CUPTI before 13.0 may hang if a kind is switched off during a launch.
    #[test]
    fn no_kind_is_switched_off_during_a_launch() {
        let cupti = SimCupti::new(Version::V12_4).script("fragile");
        let run = scenario("opened/in_turns", &[])
            .on_cupti(cupti)
            .env("GPU_TIME_RECORD", "1ms/10ms")
            .run();
        let (row, times) = opened_on_device(&run, "on_thread");
        assert!(row.opened > 0, "{row:?}");
        assert_eq!(times.kernels_per_call, Some(1.0));
    }

    /// CUPTI may hang if a kind is switched during a flush.
    #[test]
    fn no_kind_is_switched_during_a_flush() {
        let cupti = SimCupti::default().script("fragile");
        let run = scenario("opened/during_flushes", &[]).on_cupti(cupti).run();
        let row = opened(&run, "on_thread").0;
        assert_eq!((row.opened, row.all_lost()), (run.site("opened::on_thread").calls, 0));
    }
}

/// Only long calls show what happens so late.
#[test]
fn calls_that_begin_after_the_phase_are_no_samples() {
    let run = scenario("opened/late", &[]).with_cupti().run();
    let [outer, bare, named] =
        ["outlives_phase", "bare", "named"].map(|name| run.site(&format!("opened::{name}")));
    assert_eq!([outer.timed, outer.unsampled], [1, 0]);
    assert_eq!([bare.calls, bare.timed, bare.unsampled], [4, 1, 3]);
    // By events outside of the recorded call, and recorded inside.
    assert_eq!([named.calls, named.timed, named.unsampled], [6, 3, 3]);
    assert_eq!((named.row().fed + named.row().starved, named.row().opened), (2, 1));
    let paths = paths(&run);
    let [outer, bare] = ["outlives_phase", "outlives_phase/bare"].map(|path| paths[path]);
    assert_eq!((outer.recorded, bare.recorded), (1, 1));
    // The kernels of late calls are not the function's own.
    assert_time(outer.self_ns, 10_000.0, 1.0);
    assert_time(bare.self_ns, 4.0 * 10_000.0, 4.0);
}
