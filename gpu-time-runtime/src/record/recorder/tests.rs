mod allocations;
mod feeding;
mod sums;

use crate::base::lock::{Rank, try_locked};
use crate::gpu::fake::{FakeGpu, site};
use crate::gpu::{Fault, HoldPlan, HoldResult, Preparation};
use crate::record::pending::{BATCH, HANDED_BACK};
use crate::record::pool::{self, MAX_BRACKETS};
use crate::record::{feeding::Feeding, recorder::*, timeline::CallId};
use crate::stats::clock_fit::ClockFit;
use crate::stats::series::SeriesInfo;
use crate::stats::tally::Tally;
use crate::types::{handles::Stream, workload::Amount};

const STREAM: Stream = Stream(64);
const OTHER: Stream = Stream(128);

/// 1,000 bytes and an unknown number of operations.
fn workload() -> Workload {
    Workload { bytes: Amount::of(&1_000), ..Workload::UNKNOWN }
}

fn identity(launch: Option<u32>) -> SeriesIdentity {
    let device = DeviceId::Cuda(0);
    let function = SeriesIdentity::function(device, CacheState::AsFound, SeriesKey::NONE);
    SeriesIdentity { launch, ..function }
}

struct Bench {
    gpu: &'static FakeGpu,
    site: &'static CallSite,
    recorder: Recorder<FakeGpu>,
    /// The place of the calls in the call tree.
    place: Option<Place>,
}

impl Bench {
    fn new() -> Self {
        Bench { gpu: FakeGpu::leak(), site: site(), recorder: Recorder::default(), place: None }
    }

    fn try_open(
        &mut self,
        stream: Stream,
        launch: Option<u32>,
        call: Option<SumId>,
    ) -> Result<Box<Bracket<FakeGpu>>, Fault> {
        let site = self.site;
        let series = self.recorder.series.begin(site, identity(launch));
        if let Some(call) = call {
            self.recorder.sums.open_launch(call);
        }
        let key = StreamKey::new(stream, &());
        let stream_state = self.recorder.stream_state(self.gpu, key);
        let workload = if call.is_some() { Workload::UNKNOWN } else { workload() };
        let (call_id, tracked, weight, place) = (CallId::default(), false, 1.0, self.place);
        let subject = BracketSubject {
            site,
            stream,
            stream_state,
            series,
            call,
            call_id,
            tracked,
            weight,
            workload,
            place,
        };
        let mut opened = self.recorder.open(self.gpu, key, || subject).ok_or(Fault::Exhausted);
        if opened.is_err() {
            let ordered = self.recorder.pools.order(self.gpu);
            let made = pool::make(self.gpu, ordered, subject);
            let fault = made.as_ref().err().copied();
            self.recorder.pools.supply(self.gpu, ordered, made.unwrap_or_default());
            let opened_now = self.recorder.open(self.gpu, key, || subject);
            opened = opened_now.ok_or(fault.unwrap_or(Fault::Exhausted));
        }
        if let Err(fault) = opened {
            self.recorder.lose_unopened(subject, fault.into());
        }
        opened
    }

    fn open(
        &mut self,
        stream: Stream,
        launch: Option<u32>,
        call: Option<SumId>,
    ) -> Box<Bracket<FakeGpu>> {
        self.try_open(stream, launch, call).unwrap()
    }

    fn close(&mut self, mut bracket: Box<Bracket<FakeGpu>>, feeding: Feeding) {
        bracket.stop().unwrap();
        bracket.set_feeding(feeding);
        if self.recorder.pending.push(bracket) {
            self.drain();
        }
    }

    fn open_call(&mut self) -> SumId {
        let series = self.recorder.series.begin(self.site, identity(None));
        self.recorder.begin_call(series, workload(), self.place).unwrap()
    }

    /// Opens and closes one of the call's launches.
    fn launch(&mut self, launch: u32, call: SumId) {
        let bracket = self.open(STREAM, Some(launch), Some(call));
        self.close(bracket, Feeding::Certain);
    }

    fn drain(&mut self) {
        let mut drain = self.recorder.begin_drain().unwrap();
        while !drain.run() {
            self.recorder.settle(&mut drain);
        }
        self.recorder.settle(&mut drain);
        self.recorder.pending.end_drain(drain);
    }

    fn span(&mut self, stream: Stream) {
        let bracket = self.open(stream, None, None);
        self.close(bracket, Feeding::Certain);
    }

    fn series(&self, launch: Option<u32>) -> gpu_time_report::Series {
        let id = self.site.series_id(identity(launch));
        let counters = self
            .recorder
            .series
            .counters(0, usize::MAX)
            .iter()
            .find(|e| ptr::eq(e.id, id))
            .unwrap();
        let info = SeriesInfo {
            device: "cuda:0".to_owned(),
            launch: None,
            measure: id.measure(self.site.spec.scope),
            key: None,
            cache: id.cache,
            clock: id.clock,
            graph: id.graph,
            start_ns: 0,
            population: None,
            repeats: false,
            counted: false,
            looks: None,
            bias: None,
        };
        let cells = self.site.series();
        let series = &cells[id.index()].series;
        let tally = Tally { counts: counters.counts, sums: series.sums(), inner: series.inner() };
        let report = series.times().report(info, &tally);
        assert_eq!(
            report.timed,
            report.measured + report.in_flight + report.lost.iter().map(|(_, n)| n).sum::<u64>(),
            "{report:?}"
        );
        report
    }
}

#[test]
fn bracket_is_in_flight_until_gpu_passes_it() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).measured), (1, 0));
    bench.gpu.finish();
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).fed), (0, 1));
    assert_eq!(bench.series(None).raw_ns.unwrap().sum, 2_000.0);
    assert!(bench.recorder.pending.is_empty());
}

#[test]
fn blocked_stream_does_not_delay_another() {
    let mut bench = Bench::new();
    let first = bench.open(STREAM, None, None);
    let second = bench.open(OTHER, None, None);
    // The first bracket has events 1 and 2, so only the second bracket is unfinished.
    bench.gpu.finish_up_to(2);
    bench.close(second, Feeding::Certain);
    bench.close(first, Feeding::Certain);
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).measured), (1, 1));
}

#[test]
fn full_batch_triggers_a_drain() {
    let mut bench = Bench::new();
    for _ in 1..BATCH {
        bench.span(STREAM);
    }
    assert!(!bench.gpu.take_log().contains(&"elapsed"));
    bench.span(STREAM);
    let asked = bench.gpu.take_log().iter().filter(|step| **step == "elapsed").count();
    assert_eq!(asked, 1, "the oldest is not finished, so none is");
}

#[test]
fn driver_is_asked_without_the_recorders_lock() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.span(STREAM);
    }
    let Bench { gpu, recorder, .. } = bench;
    let thread: &'static Mutex<_> = Box::leak(Box::new(Mutex::new(Rank::Recorder, recorder)));
    gpu.watch(|| assert!(try_locked(thread).is_some(), "a report would wait with this thread"));
    assert!(!drain(thread), "the GPU has not passed them");
    gpu.finish();
    assert!(drain(thread));
}

#[test]
fn brackets_closed_during_a_drain_come_after_it() {
    let mut bench = Bench::new();
    let older = [(); 3].map(|()| bench.open(STREAM, None, None));
    let newer = [STREAM, OTHER].map(|stream| bench.open(stream, None, None));
    for bracket in older {
        bench.close(bracket, Feeding::Certain);
    }
    // The GPU has passed one of the older brackets.
    bench.gpu.finish_up_to(2);
    let mut drain = bench.recorder.pending.begin_drain().unwrap();
    assert!(bench.recorder.pending.begin_drain().is_none(), "one at a time");
    assert!(!bench.recorder.pending.is_empty());
    for bracket in newer {
        bench.close(bracket, Feeding::Certain);
    }
    assert!(drain.run());
    bench.recorder.settle(&mut drain);
    bench.recorder.pending.end_drain(drain);
    assert_eq!((bench.series(None).in_flight, bench.series(None).measured), (4, 1));
    // The GPU has passed the other two. The newer bracket on their stream must come after them.
    bench.gpu.finish_up_to(6);
    bench.drain();
    assert_eq!((bench.series(None).in_flight, bench.series(None).measured), (2, 3));
    bench.gpu.finish();
    bench.drain();
    assert!(bench.recorder.pending.is_empty());
    assert_eq!(bench.series(None).measured, 5);
}

/// The draining thread may be descheduled at any time, but the owner must not run out of brackets.
#[test]
fn drain_recycles_brackets_in_chunks() {
    let mut bench = Bench::new();
    let drain = bench.recorder.pending.begin_drain().unwrap();
    for _ in 0..2 * HANDED_BACK + 1 {
        let mut bracket = bench.open(STREAM, None, None);
        bracket.stop().unwrap();
        bench.recorder.pending.push(bracket);
    }
    bench.recorder.pending.end_drain(drain);
    bench.gpu.finish();
    let mut drain = bench.recorder.pending.begin_drain().unwrap();
    for chunk in 1..=2 {
        assert!(!drain.run());
        bench.recorder.settle(&mut drain);
        assert_eq!(bench.series(None).measured as usize, chunk * HANDED_BACK);
    }
    bench.gpu.take_log();
    bench.open(STREAM, None, None);
    assert_eq!(bench.gpu.take_log(), [""; 0], "an event of the first chunk is used again");
    assert!(drain.run());
    bench.recorder.settle(&mut drain);
    bench.recorder.pending.end_drain(drain);
    assert!(bench.recorder.pending.is_empty());
}

#[test]
fn events_are_reused_and_bounded() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    for _ in 0..10 * BATCH {
        bench.span(STREAM);
    }
    let made = bench.gpu.take_log().iter().filter(|step| **step == "create").count() / 2;
    assert!(made <= BATCH + BATCH / 4 + 8, "{made}");
    let mut bench = Bench::new();
    for _ in 0..MAX_BRACKETS {
        bench.span(STREAM);
    }
    assert_eq!(bench.try_open(STREAM, None, None).err(), Some(Fault::Exhausted));
    bench.gpu.finish();
    bench.drain();
    assert!(bench.try_open(STREAM, None, None).is_ok());
}

#[test]
fn events_with_a_fault_are_not_reused() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    bench.gpu.fail("elapsed", Fault::ContextGone);
    bench.drain();
    bench.gpu.recover();
    assert_eq!(bench.series(None).lost.iter().map(|(_, n)| n).sum::<u64>(), 1);
    for _ in 0..BATCH {
        let bracket = bench.open(STREAM, None, None);
        assert_ne!(bracket.pair.stop.handle(), 2);
    }
}

#[test]
fn event_without_a_second_one_is_destroyed() {
    let mut bench = Bench::new();
    bench.gpu.limit_events(7);
    bench.open(STREAM, None, None);
    assert_eq!(bench.gpu.live_events(), 6);
}

#[test]
fn events_of_a_living_context_are_destroyed_after_a_fault() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    let before = bench.gpu.live_events();
    bench.gpu.fail("elapsed", Fault::Code(999));
    bench.drain();
    assert_eq!(bench.gpu.live_events(), before - 2);
}

#[test]
fn inner_bracket_marks_the_outer_one_of_its_stream() {
    let mut bench = Bench::new();
    let outer = bench.open(STREAM, None, None);
    let beside = bench.open(OTHER, Some(1), None);
    assert!(outer.subject.stream_state.is_busy());
    let inner = bench.open(STREAM, Some(0), None);
    bench.close(inner, Feeding::Certain);
    bench.close(beside, Feeding::Certain);
    bench.close(outer, Feeding::Certain);
    assert!(!bench.recorder.stream_state(bench.gpu, StreamKey::new(STREAM, &())).is_busy());
    bench.gpu.finish();
    bench.drain();
    assert_eq!(bench.series(None).nested, 1);
    assert_eq!(bench.series(Some(0)).nested, 0);
    assert_eq!(bench.series(Some(1)).nested, 0);
}

#[test]
fn workload_is_counted_with_the_sum() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        bench.launch(launch, call);
    }
    bench.recorder.end_call(call, None);
    bench.drain();
    let bytes = |series: gpu_time_report::Series| series.bytes.map(|bytes| bytes.total);
    assert_eq!(bytes(bench.series(None)), Some(1_000.0));
    assert_eq!(bytes(bench.series(Some(0))), None);
    // The workload of a lost bracket is not counted.
    let bracket = bench.open(STREAM, None, None);
    bench.recorder.lose(bracket, Lost::Failed);
    assert_eq!(
        (bytes(bench.series(None)), bench.series(None).flops.as_ref()),
        (Some(1_000.0), None)
    );
    bench.span(STREAM);
    bench.drain();
    assert_eq!(bytes(bench.series(None)), Some(2_000.0));
}

#[test]
fn open_bracket_stays_known_after_many_other_streams() {
    let mut bench = Bench::new();
    let outer = bench.open(STREAM, None, None);
    for n in 2..4 * RECENT_STREAMS {
        bench.recorder.stream_state(bench.gpu, StreamKey::new(Stream(64 * n), &()));
        assert!(bench.recorder.has_open(), "{n}");
    }
    bench.close(outer, Feeding::Certain);
    assert!(!bench.recorder.has_open());
}

#[test]
fn open_bracket_stays_known_beside_open_ones_on_many_streams() {
    let mut bench = Bench::new();
    let first = bench.open(STREAM, None, None);
    let others: Vec<_> =
        (2..4 * RECENT_STREAMS).map(|n| bench.open(Stream(64 * n), None, None)).collect();
    others.into_iter().for_each(|bracket| bench.close(bracket, Feeding::Certain));
    assert!(bench.recorder.has_open());
    bench.close(first, Feeding::Certain);
    assert!(!bench.recorder.has_open());
    bench.recorder.stream_state(bench.gpu, StreamKey::new(OTHER, &()));
    bench.recorder.stream_state(bench.gpu, StreamKey::new(Stream(1 << 20), &()));
    assert!(bench.recorder.recent.len() <= RECENT_STREAMS);
}

/// Another thread reassigns a stream's state after this thread has found the state, but before it opens a
/// bracket on it. This can happen with more than 4,096 streams.
#[test]
fn bracket_opens_on_its_own_stream_after_a_reassignment() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    let mut subject = bench.open(STREAM, None, None).subject;
    let key = |n: usize| StreamKey::new(Stream(64 * n), &());
    let stale = stream_state::state_of(bench.gpu, key(2));
    for n in 3..10_000 {
        stream_state::state_of(bench.gpu, key(n));
    }
    assert!(!stale.is_of(key(2)));
    subject.stream_state = stale;
    let bracket = bench.recorder.open(bench.gpu, key(2), || subject).unwrap();
    assert!(bracket.subject.stream_state.is_of(key(2)));
    assert!(stream_state::state_of(bench.gpu, key(2)).is_busy());
    assert!(!stale.is_busy());
}
