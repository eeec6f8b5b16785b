//! The ways in which a process may end.

use crate::harness::{Run, Scenario, assert_lasts, scenario};

/// Ten calls of each function were measured, whatever came after.
#[track_caller]
fn assert_ten(run: &Run) {
    for name in ["exit::timed", "exit::held"] {
        let site = run.site(name);
        assert_eq!(site.row().brackets(), (10, 10, 0, 0), "{name}");
        assert_eq!(site.launch(0).brackets(), (10, 10, 0, 0), "{name}");
        assert_lasts(site.row(), 20_000.0);
    }
}

#[test]
fn main_returns() {
    assert_ten(&scenario("exit/return", &[]).run());
}

#[test]
fn exit_on_the_main_thread() {
    assert_ten(&scenario("exit/code", &[]).exits(7).run());
}

#[test]
fn exit_on_another_thread() {
    assert_ten(&scenario("exit/code_elsewhere", &[]).exits(7).run());
}

#[test]
fn exit_inside_of_a_function() {
    let run = scenario("exit/code_inside", &[]).exits(7).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").brackets(), (1, 0, 1, 0));
}

#[test]
fn main_panics() {
    assert_ten(&scenario("exit/panic", &[]).panics().exits(101).run());
}

#[test]
fn main_panics_inside_of_a_function() {
    let run = scenario("exit/panic_inside", &[]).panics().exits(101).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").lost("failed"), 1);
}

#[test]
fn another_thread_panics() {
    for how in ["joined", "ignored"] {
        let run = scenario("exit/panic_elsewhere", &[how]).panics().run();
        assert_ten(&run);
        assert_eq!(run.row("exit::body").lost("failed"), 1);
    }
}

/// Longer than anybody waits for: the end of the process does not.
#[test]
fn a_kernel_still_runs() {
    let run = scenario("exit/running", &["3000"]).exits(7).run();
    let site = run.site("exit::timed");
    assert_eq!(site.row().brackets(), (11, 10, 1, 0));
    assert_eq!(site.launch(0).brackets(), (11, 10, 1, 0));
    assert!(run.stderr.contains("1 in flight"), "{}", run.stderr);
}

#[test]
fn threads_are_at_work_when_main_returns() {
    let run = scenario("exit/threads_at_work", &[]).counts_on().run();
    let row = run.row("exit::timed");
    assert!(row.timed > 10 && row.measured >= 10, "{row:?}");
}

#[test]
fn the_context_was_dropped() {
    assert_ten(&scenario("exit/context_dropped", &[]).run());
}

#[test]
fn the_context_was_destroyed() {
    let run = scenario("exit/context_destroyed", &[]).run();
    for name in ["exit::timed", "exit::held"] {
        let row = run.row(name);
        assert_eq!((row.timed, row.measured + row.lost("context")), (10, 10), "{row:?}");
    }
}

#[test]
fn the_primary_context_was_reset() {
    let run = scenario("exit/context_reset", &[]).run();
    for name in ["exit::timed", "exit::held"] {
        let row = run.row(name);
        assert_eq!((row.timed, row.measured, row.lost("context")), (20, 10, 10), "{row:?}");
    }
}

#[test]
fn the_driver_came_after_the_first_call() {
    let run = scenario("exit/after_host", &[]).run();
    assert_eq!(run.site("exit::timed").row().brackets(), (10, 10, 0, 0));
    assert_eq!(run.row("exit::host").brackets(), (1, 1, 0, 0));
}

#[test]
fn nobody_keeps_the_context() {
    let run = scenario("exit/nobody_keeps_the_context", &[]).run();
    let row = run.row("exit::published");
    assert_eq!(row.brackets(), (1, 1, 0, 0));
    assert_eq!(row.device, "cuda:0");
}

#[test]
fn the_child_of_a_process_with_a_driver_is_silent() {
    let run = scenario("exit/fork_after", &[]).run();
    let site = run.site("exit::timed");
    assert_eq!(site.row().brackets(), (20, 20, 0, 0));
    assert_eq!(run.site("exit::quiet").calls, 0, "the child's calls are its own");
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn a_child_may_leave_a_function_that_its_parent_entered() {
    let run = scenario("exit/fork_inside", &[]).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").brackets(), (1, 1, 0, 0));
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn a_child_that_was_forked_before_is_like_any_process() {
    let run = scenario("exit/fork_before", &[]).reports(1).run();
    assert_ten(&run);
    let [child] = &run.others[..] else { panic!("{:?}", run.others) };
    child.check();
    assert_eq!(child.site("exit::timed").row().brackets(), (3, 3, 0, 0));
}

/// Its parent has its calls, too.
#[test]
fn the_child_of_a_process_that_timed_the_host_is_silent() {
    let run = scenario("exit/fork_after_host", &[]).run();
    assert_eq!(run.row("exit::host").brackets(), (2, 2, 0, 0));
    assert_eq!(run.site("exit::timed").calls, 0, "the child's calls are its own");
    assert!(run.others.is_empty(), "{:?}", run.others);
}

#[test]
fn children_end_whatever_threads_of_their_parent_had_locked() {
    let run = scenario("exit/fork_beside_threads", &[]).run();
    assert!(run.others.is_empty(), "{:?}", run.others);
}

#[test]
fn abort_ends_the_process_at_once() {
    scenario("exit/abort", &[]).killed_by(libc::SIGABRT).reports_nothing().run();
}

mod simulated {
    use super::*;

    /// The stream never goes on: the wait for it is bounded.
    #[test]
    fn a_stream_hangs() {
        let run = scenario("exit/unread", &[]).simulated(|sim| sim.faults("stream:hang=1")).run();
        let site = run.site("exit::timed");
        assert_eq!(site.row().brackets(), (10, 0, 10, 0));
        assert_eq!(site.launch(0).brackets(), (10, 0, 10, 0));
    }

    /// Asking is what lets virtual time pass: here, enough for all that is in flight.
    #[test]
    fn what_is_in_flight_is_waited_for() {
        let patient =
            |sim: gpu_time_sim_driver::SimDriver| sim.model("cost.cuEventElapsedTime_v2=10000");
        let run = scenario("exit/unread", &[]).simulated(patient).run();
        assert_eq!(run.row("exit::timed").brackets(), (10, 10, 0, 0));
    }

    /// A first call on another thread, in which this driver call hangs for much longer than a test may take.
    fn stuck_in(call: &str) -> Scenario {
        let faults = format!("{call}=hang");
        scenario("exit/stuck", &["600000000000"])
            .simulated(|sim| sim.model("hang_limit_ms=600000").faults(&faults))
    }

    /// Nobody waits for a thread that does not come out of the driver, and the report says that there is
    /// one. The program's own stream is the first, ours the second, and the third is to calibrate on.
    #[test]
    fn a_thread_is_stuck_at_a_context() {
        let run = stuck_in("cuStreamCreate:2").warns("1 threads did not come out").run();
        assert_eq!(run.site("exit::timed").calls, 0);
        assert!(run.report().devices.is_empty());
    }

    #[test]
    fn a_thread_is_stuck_in_the_calibration() {
        let run = stuck_in("cuStreamCreate:3").run();
        assert_eq!(run.site("exit::timed").calls, 0);
        let warnings = &run.report().devices[0].warnings;
        assert!(warnings[0].contains("had not come to an end"), "{warnings:?}");
        assert_eq!(run.report().devices[0].event_bias_source.as_deref(), Some("floor"));
    }
}
