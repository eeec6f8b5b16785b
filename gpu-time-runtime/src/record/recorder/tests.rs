mod feeding;
mod sums;

use crate::base::lock::{Mutex, Rank};
use crate::gpu::fake::{FakeGpu, site};
use crate::gpu::{Fault, HoldResult};
use crate::gpu::{HoldPlan, Preparation};
use crate::record::bracket::Feeding;
use crate::record::drain;
use crate::record::pending::BATCH;
use crate::record::pool::{self, MOST};
use crate::record::recorder::*;
use crate::record::timeline::CallId;
use crate::stats::clock_fit::ClockFit;
use crate::types::handles::Stream;
use crate::types::workload::Amount;

const STREAM: Stream = Stream(64);
const OTHER: Stream = Stream(128);

/// A thousand bytes, and operations that nobody knows.
fn recorder() -> Workload {
    Workload { bytes: Amount::of(&1_000), ..Workload::UNKNOWN }
}

struct Bench {
    gpu: &'static FakeGpu,
    site: &'static CallSite,
    recorder: Recorder<FakeGpu>,
    returns: CallStatuses,
}

impl Bench {
    fn new() -> Self {
        Bench {
            gpu: FakeGpu::leak(),
            site: site(),
            recorder: Recorder::default(),
            returns: CallStatuses::default(),
        }
    }

    fn try_open(
        &mut self,
        stream: Stream,
        launch: Option<u32>,
        call: Option<SumId>,
    ) -> Result<Box<Bracket<FakeGpu>>, Fault> {
        let site = self.site;
        let entry = self.recorder.series.begin(
            site,
            launch,
            DeviceId::Cuda(0),
            CacheState::AsFound,
            SeriesKey::NONE,
        );
        if let Some(call) = call {
            self.recorder.begin_launch(call);
        }
        let stream_state = self.recorder.stream_state(self.gpu, StreamKey::new(stream, &()));
        let workload = if call.is_some() { Workload::UNKNOWN } else { recorder() };
        let (call_id, tracked, weight) = (CallId::default(), false, 1.0);
        let subject =
            Subject { site, stream, stream_state, entry, call, call_id, tracked, weight, workload };
        let mut opened = self.recorder.open(self.gpu, || subject).ok_or(Fault::Exhausted);
        if opened.is_err() {
            let ordered = self.recorder.pools.order(self.gpu);
            let made = pool::make(self.gpu, ordered, subject);
            let fault = made.as_ref().err().copied();
            self.recorder.pools.supply(self.gpu, ordered, made.unwrap_or_default());
            opened =
                self.recorder.open(self.gpu, || subject).ok_or(fault.unwrap_or(Fault::Exhausted));
        }
        if let Err(fault) = opened {
            self.recorder.lose(subject, fault.into(), &self.returns);
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
        if self.recorder.enqueue(bracket) {
            self.drain();
        }
    }

    fn open_call(&mut self) -> SumId {
        let (device, cache) = (DeviceId::Cuda(0), CacheState::AsFound);
        let entry = self.recorder.series.begin(self.site, None, device, cache, SeriesKey::NONE);
        self.recorder.open_call(entry, recorder(), &self.returns).unwrap()
    }

    fn drain(&mut self) {
        let mut look = self.recorder.begin_look().unwrap();
        look.run();
        self.recorder.end_look(look, &self.returns);
    }

    fn span(&mut self, stream: Stream) {
        let id = self.open(stream, None, None);
        self.close(id, Feeding::Certain);
    }

    fn row(&self, launch: Option<u32>) -> gpu_time_report::Series {
        let row =
            self.site.series_id(launch, DeviceId::Cuda(0), CacheState::AsFound, SeriesKey::NONE);
        let entry = self.recorder.series.iter().find(|e| ptr::eq(e.id, row)).unwrap();
        let info = crate::stats::series::SeriesInfo {
            device: "cuda:0".to_owned(),
            launch: None,
            measure: row.measure(self.site.spec.scope),
            key: None,
            cache: row.cache,
            clock: row.clock,
            graph: row.graph,
            timed: entry.timed,
            in_flight: entry.in_flight,
            start_ns: 0,
            population: None,
            repeats: false,
            bias: None,
        };
        let rows = self.site.series();
        let series = &rows[row.index()].series;
        let report = series.recorded().report(info, series.tally());
        assert_eq!(
            report.timed(),
            report.measured() + report.in_flight() + report.lost().map(|(_, n)| n).sum::<u64>(),
            "{report:?}"
        );
        report
    }
}

#[test]
fn a_bracket_is_in_flight_until_the_gpu_has_passed_it() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (1, 0));
    bench.gpu.finish();
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).fed()), (0, 1));
    assert_eq!(bench.row(None).raw_ns().unwrap().sum(), 2_000.0);
    assert!(bench.recorder.is_idle());
}

#[test]
fn a_blocked_stream_does_not_hold_up_another() {
    let mut bench = Bench::new();
    let first = bench.open(STREAM, None, None);
    let second = bench.open(OTHER, None, None);
    // The events of the first came first, so only the second is unfinished.
    bench.gpu.finish_up_to(2);
    bench.close(second, Feeding::Certain);
    bench.close(first, Feeding::Certain);
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (1, 1));
}

#[test]
fn looking_is_left_until_a_batch_has_come_together() {
    let mut bench = Bench::new();
    for _ in 1..BATCH {
        bench.span(STREAM);
    }
    assert!(!bench.gpu.take_log().contains(&"elapsed"));
    bench.span(STREAM);
    let looks = bench.gpu.take_log().iter().filter(|step| **step == "elapsed").count();
    assert_eq!(looks, 1, "the oldest is not finished, so none is");
}

#[test]
fn the_driver_is_asked_without_the_lane() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.span(STREAM);
    }
    let Bench { gpu, recorder, returns, .. } = bench;
    let thread: &'static Mutex<_> = Box::leak(Box::new(Mutex::new(Rank::Recorder, recorder)));
    gpu.watch(|| {
        assert!(thread.try_lock().is_ok(), "who makes a report would wait with this thread")
    });
    assert!(!drain::drain(thread, &returns), "the GPU has not passed them");
    gpu.finish();
    assert!(drain::drain(thread, &returns));
}

#[test]
fn what_is_enqueued_during_a_look_comes_after_it() {
    let mut bench = Bench::new();
    let older = [(); 3].map(|()| bench.open(STREAM, None, None));
    let newer = [STREAM, OTHER].map(|stream| bench.open(stream, None, None));
    for bracket in older {
        bench.close(bracket, Feeding::Certain);
    }
    // The GPU has passed one of the older.
    bench.gpu.finish_up_to(2);
    let mut look = bench.recorder.begin_look().unwrap();
    assert!(bench.recorder.begin_look().is_none(), "one at a time");
    assert!(!bench.recorder.is_idle());
    for bracket in newer {
        bench.close(bracket, Feeding::Certain);
    }
    look.run();
    bench.recorder.end_look(look, &bench.returns);
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (4, 1));
    // And all of the older, which a newer one of their stream must not stand before.
    bench.gpu.finish_up_to(6);
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (2, 3));
    bench.gpu.finish();
    bench.drain();
    assert!(bench.recorder.is_idle());
    assert_eq!(bench.row(None).measured(), 5);
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
    for _ in 0..MOST {
        bench.span(STREAM);
    }
    assert_eq!(bench.try_open(STREAM, None, None).err(), Some(Fault::Exhausted));
    bench.gpu.finish();
    bench.drain();
    assert!(bench.try_open(STREAM, None, None).is_ok());
}

#[test]
fn events_that_answer_with_an_error_are_not_used_again() {
    let mut bench = Bench::new();
    bench.span(STREAM);
    bench.gpu.fail("elapsed", Fault::ContextGone);
    bench.drain();
    bench.gpu.recover();
    assert_eq!(bench.row(None).lost().map(|(_, n)| n).sum::<u64>(), 1);
    for _ in 0..BATCH {
        let bracket = bench.open(STREAM, None, None);
        assert_ne!(bracket.pair.stop.handle(), 2);
    }
}

#[test]
fn an_inner_bracket_marks_the_outer_one_of_its_stream() {
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
    assert_eq!(bench.row(None).nested(), 1);
    assert_eq!(bench.row(Some(0)).nested(), 0);
    assert_eq!(bench.row(Some(1)).nested(), 0);
}

#[test]
fn work_is_counted_with_the_sample_of_the_whole_call() {
    let mut bench = Bench::new();
    bench.gpu.finish();
    let call = bench.open_call();
    for launch in 0..2 {
        let bracket = bench.open(STREAM, Some(launch), Some(call));
        bench.close(bracket, Feeding::Certain);
    }
    bench.returns.set(call, None);
    bench.drain();
    let bytes = |row: gpu_time_report::Series| row.bytes().map(|bytes| bytes.total());
    assert_eq!(bytes(bench.row(None)), Some(1_000.0));
    assert_eq!(bytes(bench.row(Some(0))), None);
    // What is lost did no work that anyone measured.
    let bracket = bench.open(STREAM, None, None);
    bench.recorder.abandon(bracket, Lost::Failed, &bench.returns);
    assert_eq!((bytes(bench.row(None)), bench.row(None).flops()), (Some(1_000.0), None));
    bench.span(STREAM);
    bench.drain();
    assert_eq!(bytes(bench.row(None)), Some(2_000.0));
}

#[test]
fn an_open_bracket_is_known_of_however_many_streams_come_after_its_own() {
    let mut bench = Bench::new();
    let outer = bench.open(STREAM, None, None);
    for n in 2..4 * TRACKS {
        bench.recorder.stream_state(bench.gpu, StreamKey::new(Stream(64 * n), &()));
        assert!(bench.recorder.has_open(), "{n}");
    }
    bench.close(outer, Feeding::Certain);
    assert!(!bench.recorder.has_open());
}
