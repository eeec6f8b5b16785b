//! Tests for the ways in which a process can end.

use std::process::{Command, Stdio};

use crate::harness::{Run, Scenario, assert_lasts, is_real, program, scenario};

/// Asserts that ten calls to each function were measured, whatever came afterwards.
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
fn return_from_main() {
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
fn exit_inside_function() {
    let run = scenario("exit/code_inside", &[]).exits(7).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").brackets(), (1, 0, 1, 0));
}

#[test]
fn panic_in_main() {
    assert_ten(&scenario("exit/panic", &[]).panics().exits(101).run());
}

#[test]
fn panic_inside_function() {
    let run = scenario("exit/panic_inside", &[]).panics().exits(101).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").lost("failed"), 1);
}

#[test]
fn panic_on_another_thread() {
    for how in ["joined", "ignored"] {
        let run = scenario("exit/panic_elsewhere", &[how]).panics().run();
        assert_ten(&run);
        assert_eq!(run.row("exit::body").lost("failed"), 1);
    }
}

/// The kernel runs longer than any wait, so the exit does not wait for it.
#[test]
fn exit_with_running_kernel() {
    let run = scenario("exit/running", &["3000"]).with_cupti().exits(7).run();
    let site = run.site("exit::timed");
    assert_eq!(site.row().brackets(), (11, 10, 1, 0));
    assert_eq!(site.launch(0).brackets(), (11, 10, 1, 0));
    assert!(run.stderr.contains("1 in flight"), "{}", run.stderr);
}

#[test]
fn exit_with_working_threads() {
    let run = scenario("exit/threads_at_work", &[]).keeps_counting().run();
    let row = run.row("exit::timed");
    assert!(row.timed > 10 && row.measured >= 10, "{row:?}");
}

#[test]
fn context_dropped() {
    assert_ten(&scenario("exit/context_dropped", &[]).run());
}

#[test]
fn context_destroyed() {
    let run = scenario("exit/context_destroyed", &[]).run();
    for name in ["exit::timed", "exit::held"] {
        let row = run.row(name);
        assert_eq!((row.timed, row.measured + row.lost("context")), (10, 10), "{row:?}");
    }
}

#[test]
fn primary_context_reset() {
    let run = scenario("exit/context_reset", &[]).run();
    for name in ["exit::timed", "exit::held"] {
        let row = run.row(name);
        assert_eq!((row.timed, row.measured, row.lost("context")), (20, 10, 10), "{row:?}");
    }
}

#[test]
fn driver_loaded_after_first_call() {
    let run = scenario("exit/after_host", &[]).run();
    assert_eq!(run.site("exit::timed").row().brackets(), (10, 10, 0, 0));
    assert_eq!(run.row("exit::host").brackets(), (1, 1, 0, 0));
}

#[test]
fn context_not_retained() {
    let run = scenario("exit/context_not_retained", &[]).run();
    let row = run.row("exit::published");
    assert_eq!(row.brackets(), (1, 1, 0, 0));
    assert_eq!(row.device, "cuda:0");
}

#[test]
fn never_called_prints_table_without_driver() {
    // A report here might overwrite the report of a child that timed something.
    let run = scenario("exit/never_called", &[]).calls_nothing().run();
    assert!(run.stderr.contains("none of the "), "{}", run.stderr);
    let why = ".json`: no function with `#[gpu_timed]` was called";
    assert!(run.stderr.contains(why), "{}", run.stderr);
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.calls().count(), 0);
    let off = scenario("exit/never_called", &[]).env("GPU_TIME", "off").reports_nothing().run();
    assert_eq!(off.stderr, "");
    // Nor if the start was recorded.
    let started = scenario("exit/never_called", &[]).env("GPU_TIME_RECORD", "start:1s");
    let started = started.calls_nothing().run();
    assert!(started.stderr.contains(why) && started.others.is_empty(), "{}", started.stderr);
}

#[test]
fn missing_directory_of_program_is_reported_at_once() {
    scenario("exit/never_called_to_nowhere", &[])
        .complains("gpu-time: cannot write the report to `/no/such/folder/a.csv` yet: ")
        .calls_nothing()
        .run();
}

#[test]
fn fork_after_driver_is_silent() {
    let run = scenario("exit/fork_after", &[]).run();
    let site = run.site("exit::timed");
    assert_eq!(site.row().brackets(), (20, 20, 0, 0));
    assert_eq!(run.site("exit::quiet").calls, 0, "the child's calls are not the parent's");
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn fork_inside_function() {
    let run = scenario("exit/fork_inside", &[]).run();
    assert_ten(&run);
    assert_eq!(run.row("exit::body").brackets(), (1, 1, 0, 0));
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn fork_before_first_call() {
    let run = scenario("exit/fork_before", &[]).reports(1).run();
    assert_ten(&run);
    let [child] = &run.others[..] else { panic!("{:?}", run.others) };
    child.check();
    assert_eq!(child.site("exit::timed").row().brackets(), (3, 3, 0, 0));
}

/// The parent reports only its own calls.
#[test]
fn fork_after_host_times_is_silent() {
    let run = scenario("exit/fork_after_host", &[]).run();
    assert_eq!(run.row("exit::host").brackets(), (2, 2, 0, 0));
    assert_eq!(run.site("exit::timed").calls, 0, "the child's calls are not the parent's");
    assert!(run.others.is_empty(), "{:?}", run.others);
}

#[test]
fn fork_with_locks_held_by_other_threads() {
    let run = scenario("exit/fork_beside_threads", &[]).run();
    assert!(run.others.is_empty(), "{:?}", run.others);
}

#[test]
fn fork_beside_every_function() {
    for argument in ["called", "not called"] {
        let mut forking = Command::new(program());
        forking.args(["exit/fork_beside_everything", argument]).stderr(Stdio::null());
        let status = forking.env("GPU_TIME_REPORT", "json:/dev/null").status().unwrap();
        assert!(status.success(), "{argument}: {status}");
    }
}

#[test]
fn call_before_main_is_reported() {
    let run = scenario("exit/constructor", &[]).env("GPU_TIME_TEST_CONSTRUCTOR", "1").run();
    assert_eq!(run.row("exit::host").brackets(), (2, 2, 0, 0));
}

/// The driver's exit handler was registered after the runtime's first one.
#[test]
fn driver_begun_inside_opened_call() {
    for argument in ["returns", "launches", "exits"] {
        let run = scenario("exit/driver_begun_inside", &[argument]).with_cupti().run();
        let row = run.row("exit::driver_begun_inside::opened");
        let lost = u64::from(argument == "exits");
        assert_eq!((row.timed, row.opened, row.all_lost()), (1, 1 - lost, lost), "{argument}");
        // Only rarely does anything else show that the report comes before the teardown.
        let mut callbacks = run.trace.calls_of("cuptiEnableCallback");
        let has_init = callbacks.any(|call| call.args.values().any(|id| id.as_u64() == Some(1)));
        assert!(is_real() || has_init, "{argument}: `cuInit` has no callback");
    }
}

#[test]
fn abort_makes_no_report() {
    scenario("exit/abort", &[]).killed_by(libc::SIGABRT).reports_nothing().run();
}

mod simulated {
    use std::collections::BTreeSet;

    use super::*;

    /// Host memory used by a destroyed context is reused for the next one.
    #[test]
    fn destroyed_contexts_return_their_pages() {
        const CONTEXTS: u64 = 30;
        let count = CONTEXTS.to_string();
        let run = scenario("exit/contexts_in_turn", &[&count]).simulated(|sim| sim).run();
        let row = run.row("exit::held");
        assert_eq!((row.timed, row.measured + row.lost("context")), (10 * CONTEXTS, 10 * CONTEXTS));
        let registered = run.trace.calls_of("cuMemHostRegister_v2");
        let registered: Vec<_> = registered.map(|call| call.args["p"].to_string()).collect();
        assert_eq!(registered.len() as u64, 2 * CONTEXTS);
        // One page for holds, and one for line times.
        assert_eq!(BTreeSet::from_iter(registered).len(), 2);
    }

    /// A page without a device address is given up by the context that has registered it.
    #[test]
    fn page_without_an_address_is_not_left_registered() {
        let run = scenario("exit/contexts_in_turn", &["2"])
            .simulated(|sim| sim.faults("cuMemHostGetDevicePointer_v2:1=999"))
            .run();
        assert_eq!(run.row("exit::held").timed, 20);
        assert_eq!(run.trace.calls_of("cuMemHostUnregister").count(), 1);
    }

    /// The stream makes no progress; the wait for it is bounded.
    #[test]
    fn hanging_stream() {
        let run = scenario("exit/unread", &[]).simulated(|sim| sim.faults("stream:hang=1")).run();
        let site = run.site("exit::timed");
        assert_eq!(site.row().brackets(), (10, 0, 10, 0));
        assert_eq!(site.launch(0).brackets(), (10, 0, 10, 0));
    }

    /// Reading the time of an event pair advances virtual time, here by enough for all pending work to complete.
    #[test]
    fn exit_waits_for_pending_samples() {
        let run = scenario("exit/unread", &[])
            .simulated(|sim| sim.model("cost.cuEventElapsedTime_v2=10000"))
            .run();
        assert_eq!(run.row("exit::timed").brackets(), (10, 10, 0, 0));
    }

    /// Makes the first call on another thread hang in this driver call, for much longer than any
    /// test may take.
    fn stuck_in(call: &str) -> Scenario {
        let faults = format!("{call}=hang");
        scenario("exit/stuck", &["600000000000"])
            .simulated(|sim| sim.model("hang_limit_ms=600000").faults(&faults))
    }

    /// The report does not wait for a thread that hangs in the driver, but mentions it. The
    /// program's own stream is created first, the runtime's second, and the one for calibration
    /// third.
    #[test]
    fn thread_stuck_in_context_setup() {
        let run = stuck_in("cuStreamCreate:2").warns("1 thread did not return").run();
        assert_eq!(run.site("exit::timed").calls, 0);
        assert!(run.report().devices.is_empty());
    }

    #[test]
    fn thread_stuck_in_calibration() {
        let run = stuck_in("cuStreamCreate:3").run();
        assert_eq!(run.site("exit::timed").calls, 0);
        let warnings = &run.report().devices[0].warnings;
        assert!(warnings[0].contains("was still running"), "{warnings:?}");
        assert_eq!(run.report().devices[0].event_bias_source.as_deref(), Some("floor"));
    }
}
