//! Tests for stream captures, which timing must not disturb.

use crate::harness::scenario;

#[test]
fn other_threads_timed_during_capture() {
    for mode in ["global", "thread_local", "relaxed"] {
        for use_before in ["first", "used"] {
            let run = scenario("capture/modes", &[mode, use_before]).reports(2).run();
            assert_eq!((run.fact("nodes"), run.fact("replayed")), (9, 6), "{mode}, {use_before}");
            let before = u64::from(use_before == "used");
            let captured = run.site("capture::captured");
            assert_eq!(captured.counts(), (4 + before, 0, 0, 4 + before));
            for launch in [None, Some(0)] {
                let lost: u64 = captured.rows(launch).map(|row| row.lost("capture")).sum();
                let measured: u64 = captured.rows(launch).map(|row| row.measured).sum();
                assert_eq!((lost, measured), (3, 1 + before), "{:?}", captured.series);
            }
            let body = run.site("capture::captured_body");
            assert_eq!(body.total(|row| row.lost("capture")), 3);
            assert_eq!(body.total(|row| row.measured), before);

            let calls = 200 + 4 * before;
            let elsewhere = run.site("capture::elsewhere");
            assert_eq!(elsewhere.counts(), (calls, 5, 0, calls - 5), "{mode}, {use_before}");
            assert_eq!(elsewhere.total(|row| row.all_lost() + row.in_flight), 0);
            let body = run.site("capture::elsewhere_body");
            assert_eq!(body.counts(), (calls, 0, 0, calls));
            assert_eq!(body.total(|row| row.all_lost() + row.in_flight), 0);
            assert_eq!(run.report().warnings(), [""; 0]);
        }
    }
}

/// Events that never get a time are recycled, so they do not run out.
#[test]
fn captures_in_brackets_do_not_leak_events() {
    let run = scenario("capture/many_edges", &[]).untraced().run();
    let around = run.row("capture::around");
    assert_eq!((around.timed, around.lost("capture"), around.measured), (40_010, 40_000, 10));
}

#[test]
fn capture_begins_or_ends_in_bracket() {
    let run = scenario("capture/edges", &[]).run();
    let around = run.row("capture::around");
    assert_eq!((around.timed, around.measured, around.lost("capture")), (15, 5, 10));
    let launches = run.site("capture::around_launches");
    // The stop event is recorded after the capture has begun.
    assert_eq!(launches.launch(0).lost("capture"), 5);
    assert_eq!(launches.launch(1).lost("capture"), 5);
    assert_eq!(launches.row().lost("capture"), 5);
}

#[test]
fn null_stream_during_capture() {
    let run = scenario("capture/null_stream", &[]).run();
    assert_eq!((run.fact("nodes"), run.fact("replayed")), (2, 2));
    let on_null = run.site("capture::on_null");
    assert_eq!(on_null.total(|row| row.lost("capture")), 10);
    assert_eq!(on_null.total(|row| row.measured), 1);
    assert_eq!(run.row("capture::captured").lost("capture"), 2);
}
