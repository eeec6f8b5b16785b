//! Tests for the proof that a bracket was fed.

use crate::record::recorder::tests::*;

/// The GPU's timer may have steps of 1,024 ns, so a hold may end up to one step early.
#[test]
fn fixed_hold_proves_fed_within_timer_step() {
    for (took_ns, fed) in [(48_976, true), (48_977, false), (50_000, false)] {
        let mut bench = Bench::new();
        bench.gpu.finish();
        let mut bracket = bench.open(STREAM, None, None);
        let prepare = Preparation { cold: None, hold: Some(HoldPlan::For(50_000)) };
        bench.gpu.set_now(7_000);
        bracket.start(prepare, false, None).unwrap();
        bench.gpu.set_now(7_000 + took_ns);
        bracket.stop().unwrap();
        bench.recorder.pending.push(bracket);
        bench.drain();
        assert_eq!(bench.series(None).fed, u64::from(fed), "{took_ns}");
    }
}

#[test]
fn evidence_decides_fed() {
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
        assert_eq!(bench.series(None).fed == 1, fed, "{feeding:?}");
    }
}

/// A clock fit for the fake GPU, whose events are 1,000 ns apart. A pair with handles `2n - 1` and
/// `2n` takes `2n` µs and starts `2n - 1` µs after the anchor, whose handle is 0.
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
fn start_passed_after_the_enqueued_stop_is_fed() {
    for (stopped_ns, fed) in [(0, true), (899, true), (900, false), (5_000, false)] {
        let mut bench = Bench::new();
        bench.gpu.align(aligned());
        bench.gpu.finish();
        let bracket = bench.open(STREAM, None, None);
        bench.gpu.set_now(stopped_ns);
        bench.close(bracket, Feeding::Unknown);
        bench.drain();
        assert_eq!(bench.series(None).fed == 1, fed, "{stopped_ns}");
    }
}

#[test]
fn long_queue_is_fed() {
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
    assert_eq!((bench.series(None).fed, asked), (10, 10));
    // The first two of the ten brackets had eight behind them.
    assert_eq!(bench.series(None).queued, 2);
}

/// Only the stop of a bracket around another one is behind it.
#[test]
fn queue_behind_a_bracket_begins_after_it() {
    let queued = |behind: usize| {
        let mut bench = Bench::new();
        bench.gpu.align(aligned());
        bench.gpu.finish();
        let outer = bench.open(STREAM, None, None);
        let inner = bench.open(STREAM, Some(0), None);
        bench.close(inner, Feeding::Unknown);
        bench.close(outer, Feeding::Unknown);
        (0..behind).for_each(|_| {
            let bracket = bench.open(STREAM, None, None);
            bench.close(bracket, Feeding::Unknown);
        });
        bench.drain();
        bench.series(Some(0)).queued
    };
    // With seven and the outer one, eight were closed later.
    assert_eq!([7, 8, 9].map(queued), [0, 1, 1]);
}

/// Another thread may end a future, and hands its bracket over once that thread gets the recorder's lock. The
/// recorder's own thread may have closed the next bracket by then.
#[test]
fn late_brackets_prove_nothing_about_each_other() {
    let mut bench = Bench::new();
    bench.gpu.align(aligned());
    bench.gpu.finish();
    // The GPU reaches them after 1, 3 and 5 µs.
    let [first, late, next] = [1_000, 3_000, 4_000].map(|stopped_ns| {
        let mut bracket = bench.open(STREAM, None, None);
        bench.gpu.set_now(stopped_ns);
        bracket.stop().unwrap();
        bracket
    });
    let handed_over = [first, next, late];
    handed_over.into_iter().for_each(|bracket| _ = bench.recorder.pending.push(bracket));
    let mut drain = bench.recorder.pending.begin_drain().unwrap();
    drain.run();
    let fed = drain.finished.iter().map(|finished| finished.outcome.unwrap().unwrap().flags.fed);
    assert_eq!(fed.collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn unaligned_clocks_prove_nothing() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    bench.span(STREAM);
    let bracket = bench.open(STREAM, None, None);
    bench.close(bracket, Feeding::Unknown);
    bench.drain();
    assert_eq!((bench.series(None).fed, bench.series(None).starved), (1, 1));
}
