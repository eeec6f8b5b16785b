//! Tests for per-call sums of launches.

use crate::record::recorder::tests::*;

#[test]
fn launches_add_up_once_their_call_has_returned() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        bench.launch(launch, call);
    }
    bench.drain();
    assert_eq!(bench.series(None).in_flight, 1, "the function has not returned");
    bench.recorder.end_call(call, None);
    bench.drain();
    let sum = bench.series(None);
    assert_eq!((sum.fed, sum.raw_ns.unwrap().sum), (1, 2_000.0 + 4_000.0));
}

#[test]
fn returned_call_waits_for_its_launches() {
    let mut bench = Bench::new();
    let call = bench.open_call();
    let opened = bench.open(STREAM, Some(0), Some(call));
    bench.close(opened, Feeding::Unknown);
    bench.recorder.end_call(call, None);
    bench.drain();
    assert_eq!(bench.series(None).in_flight, 1);
    bench.gpu.finish();
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).starved), (0, 1));
}

#[test]
fn lost_launch_loses_the_sum() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    bench.launch(0, call);
    let bad = bench.open(STREAM, Some(1), Some(call));
    bench.recorder.lose(bad, Lost::Failed);
    bench.recorder.end_call(call, None);
    bench.drain();
    bench.drain();
    assert_eq!(bench.series(Some(0)).fed, 1);
    assert_eq!(bench.series(Some(1)).lost.iter().map(|(_, n)| n).sum::<u64>(), 1);
    assert_eq!(bench.series(None).lost.iter().map(|(_, n)| n).sum::<u64>(), 1);
}

#[test]
fn running_call_keeps_its_sum_open() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        bench.launch(launch, call);
        bench.drain();
        assert_eq!(bench.series(None).in_flight, 1);
    }
    bench.recorder.end_call(call, None);
    bench.drain();
    assert_eq!(bench.series(None).raw_ns.unwrap().sum, 2_000.0 + 2_000.0);
    let next = bench.open_call();
    bench.drain();
    assert_eq!(next, call, "its slot is free again");
    assert_eq!(bench.series(None).in_flight, 1, "the call runs");
}

#[test]
fn calls_with_only_lost_launches_keep_their_reason() {
    let mut bench = Bench::new();
    for _ in 0..3_000 {
        let call = bench.open_call();
        let opened = bench.open(STREAM, Some(0), Some(call));
        bench.recorder.lose(opened, Lost::Failed);
        bench.recorder.end_call(call, None);
    }
    bench.drain();
    let series = bench.series(None);
    let lost: Vec<_> = series.lost.iter().filter(|(_, n)| *n > 0).collect();
    assert_eq!(lost, [(Lost::Failed, 3_000)]);
}

#[test]
fn cancelled_call_loses_its_sum_but_not_its_launch() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    bench.launch(0, call);
    bench.recorder.end_call(call, Some(Lost::Cancelled));
    bench.drain();
    let series = bench.series(None);
    let lost: Vec<_> = series.lost.iter().filter(|(_, n)| *n > 0).collect();
    assert_eq!(lost, [(Lost::Cancelled, 1)]);
    assert_eq!(bench.series(Some(0)).fed, 1);
}

/// A drain runs on the user's stack, which may be small.
#[test]
fn draining_many_running_calls_needs_little_stack() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let calls = [(); 1_024].map(|()| bench.open_call());
    for call in calls {
        bench.launch(0, call);
    }
    bench.drain();
    let second = calls.map(|call| bench.open(STREAM, Some(1), Some(call)));
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        small.spawn_scoped(scope, || bench.drain()).unwrap();
    });
    for (call, bracket) in calls.into_iter().zip(second) {
        bench.close(bracket, Feeding::Certain);
        bench.recorder.end_call(call, None);
    }
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).measured), (0, 1_024));
}
