use std::sync::Mutex;

use super::*;
use crate::bracket::Feeding;
use crate::fake::{FakeGpu, site};
use crate::gpu::{Fault, HoldResult, Stream};
use crate::in_flight::BATCH;
use crate::look;
use crate::passage::ClockFit;
use crate::pool::{self, MOST};
use crate::recorder::{HoldPlan, Preparation};
use crate::trace::CallId;
use crate::workload::Amount;

const STREAM: Stream = Stream(64);
const OTHER: Stream = Stream(128);

/// A thousand bytes, and operations that nobody knows.
fn work() -> Workload {
    Workload { bytes: Amount::of(&1_000), ..Workload::UNKNOWN }
}

struct Bench {
    gpu: &'static FakeGpu,
    site: &'static CallSite,
    work: Work<FakeGpu>,
    returns: Returns,
}

impl Bench {
    fn new() -> Self {
        Bench {
            gpu: FakeGpu::leak(),
            site: site(),
            work: Work::default(),
            returns: Returns::default(),
        }
    }

    fn try_open(
        &mut self,
        stream: Stream,
        launch: Option<u32>,
        call: Option<CallRef>,
    ) -> Result<Box<Bracket<FakeGpu>>, Fault> {
        let site = self.site;
        let entry = self.work.rows.begin(
            site,
            launch,
            Device::Cuda(0),
            CacheState::AsFound,
            SeriesKey::NONE,
        );
        if let Some(call) = call {
            self.work.begin_launch(call);
        }
        let track = self.work.track(self.gpu, Key::new(stream, &()));
        let workload = if call.is_some() { Workload::UNKNOWN } else { work() };
        let (call_id, tracked, weight) = (CallId::default(), false, 1.0);
        let subject =
            Subject { site, stream, track, entry, call, call_id, tracked, weight, workload };
        let mut opened = self.work.open(self.gpu, || subject).ok_or(Fault::Exhausted);
        if opened.is_err() {
            let ordered = self.work.pools.order(self.gpu);
            let made = pool::make(self.gpu, ordered, subject);
            let fault = made.as_ref().err().copied();
            self.work.pools.supply(self.gpu, ordered, made.unwrap_or_default());
            opened = self.work.open(self.gpu, || subject).ok_or(fault.unwrap_or(Fault::Exhausted));
        }
        if let Err(fault) = opened {
            self.work.lose(subject, fault.into(), &self.returns);
        }
        opened
    }

    fn open(
        &mut self,
        stream: Stream,
        launch: Option<u32>,
        call: Option<CallRef>,
    ) -> Box<Bracket<FakeGpu>> {
        self.try_open(stream, launch, call).unwrap()
    }

    fn close(&mut self, mut bracket: Box<Bracket<FakeGpu>>, feeding: Feeding) {
        bracket.stop().unwrap();
        bracket.set_feeding(feeding);
        if self.work.enqueue(bracket) {
            self.drain();
        }
    }

    fn open_call(&mut self) -> CallRef {
        let (device, cache) = (Device::Cuda(0), CacheState::AsFound);
        let entry = self.work.rows.begin(self.site, None, device, cache, SeriesKey::NONE);
        self.work.open_call(entry, work(), &self.returns).unwrap()
    }

    fn drain(&mut self) {
        let mut look = self.work.begin_look().unwrap();
        look.run();
        self.work.end_look(look, &self.returns);
    }

    fn span(&mut self, stream: Stream) {
        let id = self.open(stream, None, None);
        self.close(id, Feeding::Certain);
    }

    fn row(&self, launch: Option<u32>) -> crate::report::Series {
        let row = self.site.row(launch, Device::Cuda(0), CacheState::AsFound, SeriesKey::NONE);
        let entry = self.work.rows.iter().find(|e| ptr::eq(e.row, row)).unwrap();
        let info = crate::series::RowInfo {
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
        let rows = self.site.rows();
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
    assert!(bench.work.is_idle());
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
    let Bench { gpu, work, returns, .. } = bench;
    let lane: &'static Mutex<_> = Box::leak(Box::new(Mutex::new(work)));
    gpu.watch(|| {
        assert!(lane.try_lock().is_ok(), "who makes a report would wait with this thread")
    });
    assert!(!look::drain(lane, &returns), "the GPU has not passed them");
    gpu.finish();
    assert!(look::drain(lane, &returns));
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
    let mut look = bench.work.begin_look().unwrap();
    assert!(bench.work.begin_look().is_none(), "one at a time");
    assert!(!bench.work.is_idle());
    for bracket in newer {
        bench.close(bracket, Feeding::Certain);
    }
    look.run();
    bench.work.end_look(look, &bench.returns);
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (4, 1));
    // And all of the older, which a newer one of their stream must not stand before.
    bench.gpu.finish_up_to(6);
    bench.drain();
    assert_eq!((bench.row(None).in_flight(), bench.row(None).measured()), (2, 3));
    bench.gpu.finish();
    bench.drain();
    assert!(bench.work.is_idle());
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
    assert!(outer.subject.track.is_busy());
    let inner = bench.open(STREAM, Some(0), None);
    bench.close(inner, Feeding::Certain);
    bench.close(beside, Feeding::Certain);
    bench.close(outer, Feeding::Certain);
    assert!(!bench.work.track(bench.gpu, Key::new(STREAM, &())).is_busy());
    bench.gpu.finish();
    bench.drain();
    assert_eq!(bench.row(None).nested(), 1);
    assert_eq!(bench.row(Some(0)).nested(), 0);
    assert_eq!(bench.row(Some(1)).nested(), 0);
}

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
    bench.work.abandon(bad, Lost::Failed, &bench.returns);
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
        bench.work.abandon(opened, Lost::Failed, &bench.returns);
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
        bench.work.enqueue(bracket);
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
    let anchor = crate::gpu::Event::new(0);
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
    handed_over.into_iter().for_each(|bracket| _ = bench.work.enqueue(bracket));
    let mut look = bench.work.begin_look().unwrap();
    look.run();
    let fed = look.found.iter().map(|found| found.outcome.unwrap().unwrap().fed);
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
    let bytes = |row: crate::report::Series| row.bytes().map(|bytes| bytes.total());
    assert_eq!(bytes(bench.row(None)), Some(1_000.0));
    assert_eq!(bytes(bench.row(Some(0))), None);
    // What is lost did no work that anyone measured.
    let bracket = bench.open(STREAM, None, None);
    bench.work.abandon(bracket, Lost::Failed, &bench.returns);
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
        bench.work.track(bench.gpu, Key::new(Stream(64 * n), &()));
        assert!(bench.work.has_open(), "{n}");
    }
    bench.close(outer, Feeding::Certain);
    assert!(!bench.work.has_open());
}
