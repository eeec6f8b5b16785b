//! Tests for functions that wait for their stream while it is held: no thread waits longer than the
//! deadline, and the report shows the expired holds.

use std::io::Write;

use crate::harness::{Run, is_real, scenario};

/// The total number of plain calls before and after the blocking calls, and the number of blocking
/// calls, each of which blocks while its stream is held.
const PLAIN: u64 = 8;
const BLOCKING: u64 = 3;

/// Asserts that a call waited for at most so many holds, each of which ends by its deadline of 5 ms.
/// The work itself may take longer, but a stream that is never released would be held forever.
#[track_caller]
fn assert_ended(run: &Run, holds: u64) {
    let longest_us = run.fact("longest_us");
    let most_us = if is_real() { 1_000_000 } else { holds * 5_000 + 7_000 };
    assert!(longest_us <= most_us, "{longest_us} µs");
}

/// Asserts that all samples are present and that more than `starved` of them are starved. The first
/// call always is, because it is not held.
#[track_caller]
fn assert_starved(run: &Run, starved: u64) {
    let site = run.site("hold::held");
    let row = site.row();
    assert_eq!(row.brackets(), (PLAIN + BLOCKING, PLAIN + BLOCKING, 0, 0));
    assert!(row.starved > starved, "{row:?}");
    if !is_real() {
        assert!(row.starved <= 1 + BLOCKING, "{row:?}");
        assert_eq!(site.warnings, [""; 0], "holds go on");
    }
}

/// A call that always waits for the held stream waits until the deadline.
#[test]
fn waiting_call_runs_into_deadline() {
    for name in ["waits", "depends"] {
        let run = scenario(&format!("hold/{name}"), &[]).run();
        assert_ended(&run, 1);
        assert!(run.fact("longest_us") >= 5_000, "{name}: the stream was not held");
        assert_starved(&run, BLOCKING);
        // The first call is not held.
        let site = run.site("hold::held");
        let (released, expired) = (site.holds_released, site.holds_expired);
        assert_eq!(released + expired, PLAIN + BLOCKING - 1, "{name}");
        assert!(expired >= BLOCKING, "{name}: {expired}");
        let note = format!(
            "hold::held: {expired} of {} holds ended by their deadline",
            PLAIN + BLOCKING - 1
        );
        assert!(run.stderr.contains(&note), "{}", run.stderr);
        if !is_real() {
            assert_eq!(expired, BLOCKING, "{name}");
        }
    }
}

/// The driver may or may not wait in these calls.
#[test]
fn allocation_module_load_and_full_queue() {
    for name in ["allocates", "loads", "fills"] {
        let run = scenario(&format!("hold/{name}"), &[]).run();
        assert_ended(&run, 1);
        assert_starved(&run, 0);
    }
}

#[test]
fn first_cublas_product() {
    let run = scenario("hold/cublas", &[]).run();
    if run.fact("left_out") == 1 {
        // Written directly to stderr, because the test runner captures the output of passing tests.
        let _ = writeln!(std::io::stderr(), "no libcublas: `hold/cublas` was left out");
    }
    // The time taken to load the library is not checked.
    assert_starved(&run, 0);
}

#[test]
fn two_threads_wait_for_the_device() {
    let run = scenario("hold/threads", &[]).run();
    // A call may wait for its own hold and for each of the other thread's.
    assert_ended(&run, 1 + BLOCKING);
    for (name, calls) in [("held", PLAIN + BLOCKING), ("beside", 1 + BLOCKING)] {
        let row = run.row(&format!("hold::{name}"));
        assert_eq!(row.brackets(), (calls, calls, 0, 0));
        assert!(row.starved > 0, "each waits for both: {row:?}");
    }
}

#[test]
fn unwinding_releases_the_stream() {
    let run = scenario("hold/panics", &[]).run();
    assert_ended(&run, 1);
    let row = run.row("hold::held");
    assert_eq!((row.measured, row.lost("failed")), (PLAIN, BLOCKING));
    if !is_real() {
        assert_eq!(row.fed, PLAIN - 1, "{row:?}");
        assert!(run.fact("longest_us") < 1_000, "a call waited for the deadline");
    }
}

#[test]
fn exit_while_stream_is_held() {
    let run = scenario("hold/exits", &[]).exits(7).run();
    let row = run.row("hold::held");
    assert_eq!((row.timed, row.measured), (PLAIN / 2 + 1, PLAIN / 2));
    assert_eq!(row.in_flight + row.lost("failed"), 1, "{row:?}");
}
