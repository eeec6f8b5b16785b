//! What one lane has in hand: idle, open and pending brackets, sums, rows.

use std::ptr;

use crate::bracket::{Bracket, Subject};
use crate::calls::{CallRef, Calls, Finished, Returns};
use crate::gpu::{Fault, Gpu, Stream};
use crate::in_flight::InFlight;
use crate::ledger::Ledger;
use crate::pool::Pools;
use crate::rows::{EntryRef, Rows};
use crate::sample::{CacheState, Lost, Sample};
use crate::site::{CallSite, Device};

/// A bracket that is open, as far as others must know of it.
struct Open<G: Gpu> {
    gpu: &'static G,
    stream: Stream,
    /// Tells the brackets of one stream apart: the start event, which each has of its own.
    start: usize,
    nested: bool,
}

/// A lane's brackets from their beginning to their sample.
pub(crate) struct Work<G: Gpu> {
    pools: Pools<G>,
    open: Vec<Open<G>>,
    in_flight: InFlight<G>,
    calls: Calls,
    pub rows: Rows,
}

impl<G: Gpu> Default for Work<G> {
    fn default() -> Self {
        Work {
            pools: Pools::default(),
            open: Vec::new(),
            in_flight: InFlight::default(),
            calls: Calls::default(),
            rows: Rows::default(),
        }
    }
}

impl<G: Gpu> Work<G> {
    /// Whether a bracket is open around whatever is enqueued on the stream now.
    pub fn is_inside(&self, gpu: &'static G, stream: Stream) -> bool {
        self.open.iter().any(|open| open.is_on(gpu, stream))
    }

    /// Opens a bracket, and marks those around it: its events add to their time.
    pub fn open(&mut self, gpu: &'static G, subject: Subject) -> Result<Box<Bracket<G>>, Fault> {
        let bracket = self.pools.take(gpu, subject)?;
        let stream = subject.stream;
        for outer in self.open.iter_mut().filter(|open| open.is_on(gpu, stream)) {
            outer.nested = true;
        }
        self.open.push(Open { gpu, stream, start: bracket.pair.start.handle(), nested: false });
        Ok(bracket)
    }

    /// Takes an open bracket whose stop was recorded, and looks after earlier ones now and then.
    pub fn enqueue(&mut self, mut bracket: Box<Bracket<G>>, returns: &Returns) {
        bracket.nested = self.close(&bracket);
        if self.in_flight.push(bracket) {
            self.drain(returns);
        }
    }

    /// Gives up an open bracket.
    pub fn abandon(&mut self, bracket: Box<Bracket<G>>, reason: Lost, returns: &Returns) {
        self.close(&bracket);
        let subject = bracket.subject;
        self.pools.put(bracket);
        self.lose(subject, reason, returns);
    }

    /// Counts a bracket that was never open as lost.
    pub fn lose(&mut self, subject: Subject, reason: Lost, returns: &Returns) {
        self.write(&mut Ledger::default(), subject, Err(reason), returns);
    }

    /// Turns every bracket that the GPU has passed into a sample or a loss. Never waits.
    pub fn drain(&mut self, returns: &Returns) {
        let mut ledger = Ledger::default();
        let mut in_flight = std::mem::take(&mut self.in_flight);
        in_flight.drain(|bracket, elapsed| {
            self.write(&mut ledger, bracket.subject, bracket.outcome(elapsed), returns);
            match elapsed {
                Ok(_) => self.pools.put(bracket),
                Err(_) => self.pools.forget(&bracket),
            }
        });
        self.in_flight = in_flight;
        self.settle_sums(&mut ledger, returns);
    }

    /// Whether no bracket waits for the GPU.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Begins the sum of a call, or counts it as lost where there are too many.
    pub fn open_call(
        &mut self,
        site: &'static CallSite,
        device: Device,
        cache: CacheState,
        returns: &Returns,
    ) -> Option<CallRef> {
        let entry = self.rows.begin(site, None, device, cache);
        let call = self.calls.open(site, entry).or_else(|| {
            // Where launches are lost, no bracket is enqueued that would have somebody look.
            self.settle_sums(&mut Ledger::default(), returns);
            self.calls.open(site, entry)
        });
        if call.is_none() {
            self.deliver(site, entry, Err(Lost::Events));
        }
        call
    }

    /// One more launch of the call was begun.
    pub fn begin_launch(&mut self, call: CallRef) {
        self.calls.begin(call);
    }

    /// Counts a call, and writes what became of it at once.
    pub fn count(
        &mut self,
        site: &'static CallSite,
        device: Device,
        outcome: Result<Sample, Lost>,
    ) {
        let entry = self.rows.begin(site, None, device, CacheState::AsFound);
        self.deliver(site, entry, outcome);
    }

    /// Writes what became of a call that was begun by itself.
    pub fn deliver(
        &mut self,
        site: &'static CallSite,
        entry: EntryRef,
        outcome: Result<Sample, Lost>,
    ) {
        Ledger::default().write(&mut self.rows, site, entry, outcome);
    }

    /// The bracket is open no more. Answers whether there was another inside.
    fn close(&mut self, bracket: &Bracket<G>) -> bool {
        let start = bracket.pair.start.handle();
        match self.open.iter().rposition(|o| o.start == start && ptr::eq(o.gpu, bracket.gpu)) {
            Some(at) => self.open.swap_remove(at).nested,
            None => false,
        }
    }

    fn write(
        &mut self,
        ledger: &mut Ledger,
        subject: Subject,
        outcome: Result<Sample, Lost>,
        returns: &Returns,
    ) {
        ledger.write(&mut self.rows, subject.site, subject.entry, outcome);
        let finished = subject.call.and_then(|call| self.calls.end(call, outcome, returns));
        if let Some(finished) = finished {
            self.write_sum(ledger, finished);
        }
    }

    /// Writes the sums of calls that have returned since their last launch was measured or lost.
    fn settle_sums(&mut self, ledger: &mut Ledger, returns: &Returns) {
        while let Some(finished) = self.calls.returned(returns) {
            self.write_sum(ledger, finished);
        }
    }

    fn write_sum(&mut self, ledger: &mut Ledger, finished: Finished) {
        let Finished { site, entry, outcome } = finished;
        ledger.write(&mut self.rows, site, entry, outcome);
    }
}

impl<G: Gpu> Open<G> {
    fn is_on(&self, gpu: &'static G, stream: Stream) -> bool {
        self.stream == stream && ptr::eq(self.gpu, gpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bracket::Feeding;
    use crate::fake::{FakeGpu, site};
    use crate::gpu::HoldResult;
    use crate::in_flight::BATCH;
    use crate::pool::MOST;

    const STREAM: Stream = Stream(64);
    const OTHER: Stream = Stream(128);

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
            let entry = self.work.rows.begin(site, launch, Device::Cuda(0), CacheState::AsFound);
            if let Some(call) = call {
                self.work.begin_launch(call);
            }
            let subject = Subject { site, stream, entry, call, tracked: false };
            let opened = self.work.open(self.gpu, subject);
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
            bracket.feeding = feeding;
            self.work.enqueue(bracket, &self.returns);
        }

        fn open_call(&mut self) -> CallRef {
            let (device, cache) = (Device::Cuda(0), CacheState::AsFound);
            self.work.open_call(self.site, device, cache, &self.returns).unwrap()
        }

        fn drain(&mut self) {
            self.work.drain(&self.returns);
        }

        fn span(&mut self, stream: Stream) {
            let id = self.open(stream, None, None);
            self.close(id, Feeding::Certain);
        }

        fn row(&self, launch: Option<u32>) -> crate::report::Series {
            let row = self.site.row(launch, Device::Cuda(0), CacheState::AsFound);
            let entry = self.work.rows.iter().find(|e| ptr::eq(e.row, row)).unwrap();
            let info = crate::series::RowInfo {
                device: "cuda:0".to_owned(),
                launch: None,
                cache: row.cache,
                clock: row.clock,
                timed: entry.timed,
                in_flight: entry.in_flight,
                bias_ns: None,
            };
            let rows = self.site.rows();
            let series = &rows[row.index()].series;
            let report = series.report(info, series.tally());
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
        assert!(bench.work.is_inside(bench.gpu, STREAM));
        let inner = bench.open(STREAM, Some(0), None);
        bench.close(inner, Feeding::Certain);
        bench.close(beside, Feeding::Certain);
        bench.close(outer, Feeding::Certain);
        assert!(!bench.work.is_inside(bench.gpu, STREAM));
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
}
