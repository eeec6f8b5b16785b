//! Calls whose launches add up.

use crate::record::recorder::tests::*;

#[test]
fn the_launches_of_a_call_add_up_once_it_has_returned() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        let opened = bench.open(STREAM, Some(launch), Some(call));
        bench.close(opened, Feeding::Certain);
    }
    bench.drain();
    assert_eq!(bench.row(None).in_flight(), 1, "the function has not returned");
    bench.returns.set(call, None);
    bench.drain();
    let sum = bench.row(None);
    assert_eq!((sum.fed(), sum.raw_ns().unwrap().sum()), (1, 2_000.0 + 4_000.0));
}

#[test]
fn a_call_that_returns_first_waits_for_its_launches() {
    let mut bench = Bench::new();
    let call = bench.open_call();
    let opened = bench.open(STREAM, Some(0), Some(call));
    bench.close(opened, Feeding::Unknown);
    bench.returns.set(call, None);
    bench.drain();
    assert_eq!(bench.row(None).in_flight(), 1);
    bench.gpu.finish();
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).starved()), (0, 1));
}

#[test]
fn a_lost_launch_costs_the_sum() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    let good = bench.open(STREAM, Some(0), Some(call));
    bench.close(good, Feeding::Certain);
    let bad = bench.open(STREAM, Some(1), Some(call));
    bench.recorder.lose(bad, Lost::Failed);
    bench.returns.set(call, None);
    bench.drain();
    bench.drain();
    assert_eq!(bench.row(Some(0)).fed(), 1);
    assert_eq!(bench.row(Some(1)).lost().map(|(_, n)| n).sum::<u64>(), 1);
    assert_eq!(bench.row(None).lost().map(|(_, n)| n).sum::<u64>(), 1);
}

#[test]
fn a_call_that_goes_on_after_its_first_launch_was_measured_gets_the_whole_sum() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        let opened = bench.open(STREAM, Some(launch), Some(call));
        bench.close(opened, Feeding::Certain);
        bench.drain();
        assert_eq!(bench.row(None).in_flight(), 1);
    }
    bench.returns.set(call, None);
    bench.drain();
    assert_eq!(bench.row(None).raw_ns().unwrap().sum(), 2_000.0 + 2_000.0);
    let next = bench.open_call();
    bench.drain();
    assert_eq!(next, call, "its place is free again");
    assert_eq!(bench.row(None).in_flight(), 1, "and runs");
}

#[test]
fn calls_that_only_lose_launches_are_lost_for_their_own_reason() {
    let mut bench = Bench::new();
    for _ in 0..3_000 {
        let call = bench.open_call();
        let opened = bench.open(STREAM, Some(0), Some(call));
        bench.recorder.lose(opened, Lost::Failed);
        bench.returns.set(call, None);
    }
    bench.drain();
    let row = bench.row(None);
    let lost: Vec<_> = row.lost().filter(|(_, n)| *n > 0).collect();
    assert_eq!(lost, [("failed", 3_000)]);
}

#[test]
fn a_call_that_was_left_loses_its_sum_and_not_its_launch() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    let opened = bench.open(STREAM, Some(0), Some(call));
    bench.close(opened, Feeding::Certain);
    bench.returns.set(call, Some(Lost::Cancelled));
    bench.drain();
    let row = bench.row(None);
    let lost: Vec<_> = row.lost().filter(|(_, n)| *n > 0).collect();
    assert_eq!(lost, [("cancelled", 1)]);
    assert_eq!(bench.row(Some(0)).fed(), 1);
}

/// A drain runs on the user's stack, which may be small.
#[test]
fn draining_many_running_calls_needs_little_stack() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let calls = [(); 1_024].map(|()| bench.open_call());
    for call in calls {
        let opened = bench.open(STREAM, Some(0), Some(call));
        bench.close(opened, Feeding::Certain);
    }
    bench.drain();
    let second = calls.map(|call| bench.open(STREAM, Some(1), Some(call)));
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        small.spawn_scoped(scope, || bench.drain()).unwrap();
    });
    for (call, bracket) in calls.into_iter().zip(second) {
        bench.close(bracket, Feeding::Certain);
        bench.returns.set(call, None);
    }
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (0, 1_024));
}
