//! Checks that the recorder does not allocate after warm-up.

use crate::base::allocations::allocations;
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
