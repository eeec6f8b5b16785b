//! What waits for a stream that is held: no thread waits for longer than the deadline, and the report
//! says what came of it.

use std::io::Write;

use crate::harness::{Run, is_real, scenario};

/// Calls that nothing is the matter with, before and after, and those that try the hold.
const CALM: u64 = 8;
const TRYING: u64 = 3;

/// Beyond the deadline of 5 ms, what the calls do takes its time; but a stream that nobody lets go would
/// be held for ever.
#[track_caller]
fn assert_ended(run: &Run) {
    let longest_us = run.fact("longest_us");
    let most_us = if is_real() { 1_000_000 } else { 12_000 };
    assert!(longest_us <= most_us, "{longest_us} µs");
}

/// All samples are there, and so many at least are not fed. The first call never is, as it is not held.
#[track_caller]
fn assert_starved(run: &Run, starved: u64) {
    let site = run.site("hold::held");
    let row = site.row();
    assert_eq!(row.brackets(), (CALM + TRYING, CALM + TRYING, 0, 0));
    assert!(row.starved > starved, "{row:?}");
    if !is_real() {
        assert!(row.starved <= 1 + TRYING, "{row:?}");
        assert_eq!(site.warnings, [""; 0], "holds go on");
    }
}

/// What certainly waits for the held stream meets the deadline.
#[test]
fn who_waits_meets_the_deadline() {
    for name in ["waits", "depends"] {
        let run = scenario(&format!("hold/{name}"), &[]).run();
        assert_ended(&run);
        assert!(run.fact("longest_us") >= 5_000, "{name}: it was not held");
        assert_starved(&run, TRYING);
        // The first call is not held.
        let site = run.site("hold::held");
        let (released, expired) = (site.holds_released, site.holds_expired);
        assert_eq!(released + expired, CALM + TRYING - 1, "{name}");
        assert!(expired >= TRYING, "{name}: {expired}");
        let note =
            format!("hold::held: {expired} of {} holds ended by their deadline", CALM + TRYING - 1);
        assert!(run.stderr.contains(&note), "{}", run.stderr);
        if !is_real() {
            assert_eq!(expired, TRYING, "{name}");
        }
    }
}

/// What waits in the driver, or does not, as it likes.
#[test]
fn who_allocates_or_loads_or_fills_the_queue_goes_on() {
    for name in ["allocates", "loads", "fills"] {
        let run = scenario(&format!("hold/{name}"), &[]).run();
        assert_ended(&run);
        assert_starved(&run, 0);
    }
}

#[test]
fn a_first_product_goes_on() {
    let run = scenario("hold/cublas", &[]).run();
    if run.fact("left_out") == 1 {
        // Past the test runner, which shows nothing of tests that pass.
        let _ = writeln!(std::io::stderr(), "no libcublas: `hold/cublas` was left out");
    }
    // How long a library takes to load is its own affair.
    assert_starved(&run, 0);
}

#[test]
fn two_threads_that_wait_for_all_streams_go_on() {
    let run = scenario("hold/threads", &[]).run();
    assert_ended(&run);
    for (name, calls) in [("held", CALM + TRYING), ("beside", 1 + TRYING)] {
        let row = run.row(&format!("hold::{name}"));
        assert_eq!(row.brackets(), (calls, calls, 0, 0));
        assert!(row.starved > 0, "each waits for both: {row:?}");
    }
}

#[test]
fn what_unwinds_lets_the_stream_go() {
    let run = scenario("hold/panics", &[]).run();
    assert_ended(&run);
    let row = run.row("hold::held");
    assert_eq!((row.measured, row.lost("failed")), (CALM, TRYING));
    if !is_real() {
        assert_eq!(row.fed, CALM - 1, "{row:?}");
        assert!(run.fact("longest_us") < 1_000, "nobody waits for a deadline");
    }
}

#[test]
fn the_process_ends_while_a_stream_is_held() {
    let run = scenario("hold/exits", &[]).exits(7).run();
    let row = run.row("hold::held");
    assert_eq!((row.timed, row.measured), (CALM / 2 + 1, CALM / 2));
    assert_eq!(row.in_flight + row.lost("failed"), 1, "{row:?}");
}
