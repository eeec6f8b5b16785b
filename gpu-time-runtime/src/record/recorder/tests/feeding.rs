//! Fed or starved.

use crate::record::recorder::tests::*;

/// The GPU's timer may move in steps of 1,024 ns, so that the hold ends early by one.
#[test]
fn a_hold_of_fixed_length_proves_it_by_a_step_less() {
    for (took_ns, fed) in [(48_976, true), (48_977, false), (50_000, false)] {
        let mut bench = Bench::new();
        bench.gpu.finish();
        let mut bracket = bench.open(STREAM, None, None);
        let prepare = Preparation { cold: None, hold: Some(HoldPlan::For(50_000)) };
        bench.gpu.set_now(7_000);
        bracket.start(prepare, false, None).unwrap();
        bench.gpu.set_now(7_000 + took_ns);
        bracket.stop().unwrap();
        bench.recorder.enqueue(bracket);
        bench.drain();
        assert_eq!(bench.row(None).fed(), u64::from(fed), "{took_ns}");
    }
}

#[test]
fn what_is_known_of_the_feeding_decides_the_mark() {
    for (feeding, fed) in [
        (Feeding::Certain, true),
        (Feeding::Unknown, false),
        (Feeding::Host(20), true),
        (Feeding::Host(21), false),
        (Feeding::Held(HoldResult { slot: 1, ticket: 1 }), true),
        (Feeding::Held(HoldResult { slot: 1, ticket: 9 }), false),
    ] {
        let mut bench = Bench::new();
        bench.gpu.expire(9);
        bench.gpu.finish();
        let opened = bench.open(STREAM, None, None);
        bench.close(opened, feeding);
        bench.drain();
        assert_eq!(bench.row(None).fed() == 1, fed, "{feeding:?}");
    }
}

/// Events read a thousand nanoseconds for each handle, so a pair of handles `2n - 1` and `2n` takes
/// `2n` µs and starts `2n - 1` µs after the anchor, whose handle is 0.
fn aligned() -> ClockFit {
    let anchor = crate::types::handles::Event::new(0);
    ClockFit {
        anchor,
        zero_ns: 0.0,
        rate: 1.0,
        rate_error: 0.0,
        margin_ns: 100.0,
        early_ns: -800.0,
        window_ns: 4_800.0,
    }
}

#[test]
fn a_sample_is_fed_if_the_gpu_came_to_its_start_after_the_stop_was_enqueued() {
    for (stopped_ns, fed) in [(0, true), (899, true), (900, false), (5_000, false)] {
        let mut bench = Bench::new();
        bench.gpu.align(aligned());
        bench.gpu.finish();
        let bracket = bench.open(STREAM, None, None);
        bench.gpu.set_now(stopped_ns);
        bench.close(bracket, Feeding::Unknown);
        bench.drain();
        assert_eq!(bench.row(None).fed() == 1, fed, "{stopped_ns}");
    }
}

#[test]
fn in_a_long_queue_nobody_asks_for_every_start() {
    let mut bench = Bench::new();
    bench.gpu.align(aligned());
    bench.gpu.finish();
    for call in 0..10 {
        let bracket = bench.open(STREAM, None, None);
        bench.gpu.set_now(call);
        bench.close(bracket, Feeding::Unknown);
    }
    bench.gpu.take_log();
    bench.drain();
    let asked = bench.gpu.take_log().iter().filter(|step| **step == "since").count();
    assert_eq!((bench.row(None).fed(), asked), (10, 1));
    // Of ten in a row the first two had eight behind them.
    assert_eq!(bench.row(None).queued(), 2);
}

/// A future may be closed by another thread, which hands its bracket over when that gets the lane: by then the
/// lane's own may have closed the next.
#[test]
fn brackets_that_are_handed_over_late_tell_nothing_of_each_other() {
    let mut bench = Bench::new();
    bench.gpu.align(aligned());
    bench.gpu.finish();
    // The GPU comes to them after 1, 3 and 5 µs.
    let [first, late, next] = [1_000, 3_000, 4_000].map(|stopped_ns| {
        let mut bracket = bench.open(STREAM, None, None);
        bench.gpu.set_now(stopped_ns);
        bracket.stop().unwrap();
        bracket
    });
    let handed_over = [first, next, late];
    handed_over.into_iter().for_each(|bracket| _ = bench.recorder.enqueue(bracket));
    let mut drain = bench.recorder.begin_drain().unwrap();
    drain.run();
    let fed = drain.finished.iter().map(|finished| finished.outcome.unwrap().unwrap().flags.fed);
    assert_eq!(fed.collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn without_aligned_clocks_nothing_is_proved() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    bench.span(STREAM);
    let bracket = bench.open(STREAM, None, None);
    bench.close(bracket, Feeding::Unknown);
    bench.drain();
    assert_eq!((bench.row(None).fed(), bench.row(None).starved()), (1, 1));
}
