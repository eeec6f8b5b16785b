//! Checks that the recorder does not allocate after warm-up.

use crate::base::fixtures::allocations;
use crate::record::recorder::tests::*;

/// Opens and stops a bracket on each stream, as the user's thread does before closing them.
fn stopped<const N: usize>(bench: &mut Bench, streams: [Stream; N]) -> [Box<Bracket<FakeGpu>>; N] {
    streams.map(|stream| {
        let mut bracket = bench.open(stream, None, None);
        bracket.stop().unwrap();
        bracket
    })
}

#[test]
fn closing_during_a_drain_allocates_nothing() {
    closes_without_allocating(|_| None);
}

#[test]
fn known_path_of_the_call_tree_allocates_nothing() {
    closes_without_allocating(|site| {
        site.set_id(91_000);
        let path = call_tree::path(None, site.id()).unwrap();
        Some(Place { path, around: Some(path) })
    });
}

#[test]
fn queueing_allocates_nothing_after_the_first_batch() {
    let mut bench = Bench::new();
    bench.site.set_id(92_000);
    let path = call_tree::path(None, bench.site.id());
    let mut queue = |calls: usize| {
        for _ in 0..calls {
            let series = bench.recorder.series.begin(bench.site, identity(None));
            bench.recorder.deliver(series, Ok(Sample::new(100.0).unwrap()), Workload::UNKNOWN);
            bench.recorder.queue_host_time(HostTime { series, path, ns: 100, weight: 1.0 });
        }
    };
    queue(BATCH);
    assert_eq!(allocations(|| queue(10 * BATCH + BATCH / 2)), 0);
    assert!(bench.series(None).in_flight < BATCH as u64);
    bench.drain();
    let series = bench.series(None);
    assert_eq!((series.in_flight, series.fed + series.starved), (0, 11 * BATCH as u64 + 16));
    assert_eq!(series.host_ns.unwrap().sum, 100.0 * (11.0 * BATCH as f64 + 16.0));
}

fn closes_without_allocating(place: impl FnOnce(&CallSite) -> Option<Place>) {
    const STREAMS: [Stream; 6] = [STREAM, OTHER, STREAM, STREAM, OTHER, STREAM];
    let mut bench = Bench::new();
    bench.place = place(bench.site);
    for _ in 0..3 {
        for bracket in stopped(&mut bench, STREAMS) {
            bench.recorder.pending.push(bracket);
        }
        bench.drain();
    }
    bench.gpu.finish();
    bench.drain();
    // Another thread is draining from here on.
    for bracket in stopped(&mut bench, STREAMS) {
        bench.recorder.pending.push(bracket);
    }
    let mut drain = bench.recorder.pending.begin_drain().unwrap();
    let closed = stopped(&mut bench, STREAMS);
    let closing = allocations(|| {
        closed.into_iter().for_each(|bracket| _ = bench.recorder.pending.push(bracket));
    });
    assert!(drain.run());
    let ending = allocations(|| {
        bench.recorder.settle(&mut drain);
        bench.recorder.pending.end_drain(drain);
    });
    assert_eq!((closing, ending), (0, 0));
    bench.drain();
    assert!(bench.recorder.pending.is_empty());
}
