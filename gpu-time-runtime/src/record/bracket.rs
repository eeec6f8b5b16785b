//! A bracket: the event pair around one launch or one body.

use crate::base::switches;
use crate::gpu::{Fault, Gpu, HoldPlan, HoldResult, Preparation, StreamHold};
use crate::record::disturbance;
use crate::record::feeding::{BracketTimes, FeedDetector, Feeding};
use crate::record::stream_state::{NestingMark, StreamState};
use crate::record::timeline::{self, BracketPreparation, CallId, Slice};
use crate::record::{call_sums::SumId, series_counters::SeriesRef};
use crate::site::{callsite::CallSite, cost, series_id::SeriesId};
use crate::stats::{call_tree::place::Place, clock_fit::Moment};
use crate::types::handles::{EventPair, Stream};
use crate::types::sample::{Lost, Sample, SampleFlags};
use crate::types::{attribute::Hold, workload::Workload};

/// The coarsest step of `%globaltimer`, which ends holds with a fixed duration. Some GPUs have
/// steps of 32 ns, others have this one. A hold that begins just before a step ends one step early.
const TIMER_STEP_NS: u64 = 1_024;

/// The launch or body that a bracket measures.
#[derive(Clone, Copy)]
pub(crate) struct BracketSubject {
    pub site: &'static CallSite,
    pub stream: Stream,
    pub stream_state: &'static StreamState,
    pub series: SeriesRef,
    /// The sum for the call that made the launch; `None` for a body.
    pub call: Option<SumId>,
    /// The call's id in the trace.
    pub call_id: CallId,
    /// cudarc enqueues its own waits and records around the launch.
    pub tracked: bool,
    /// The number of calls that this call represents.
    pub weight: f32,
    /// Bytes and operations to count with the sample.
    pub workload: Workload,
    /// The call's place in the call tree, if it has one.
    pub place: Option<Place>,
}

/// State that most brackets do not need: for held and traced brackets, brackets on a per-thread
/// stream, and brackets that the host time may prove fed.
struct Extras {
    feeding: Feeding,
    held: Option<StreamHold>,
    /// The fixed duration of the hold, in nanoseconds.
    delay_ns: Option<u64>,
    /// The host time before the preparation, if it is needed.
    began_ns: Option<u64>,
    /// The thread that started the bracket, if it is on a per-thread stream.
    thread_id: Option<u64>,
    /// The preparation, for a trace.
    prepared: Option<BracketPreparation>,
    /// The times at which the GPU passed the two events, for a trace.
    passed: Option<[Moment; 2]>,
}

/// An event pair, with the launch or body that it measures.
///
/// Invariant: always exactly one of idle, open or pending, because it is owned by a pool, by a
/// call's scope, or by a queue. Brackets are boxed, created on demand and reused.
#[repr(C, align(64))] // a bracket without extras touches two cache lines
pub(crate) struct Bracket<G: Gpu> {
    pub gpu: &'static G,
    pub pair: EventPair,
    /// The host time after the stop record.
    pub stopped_ns: u64,
    opened: NestingMark,
    closed: NestingMark,
    pub subject: BracketSubject,
    /// The bracket has extras. This is not an `Option`, whose discriminant the compiler may place
    /// after the value, in a third cache line. By the time a bracket is drained, it has left the
    /// caches, so each line that it touches is a miss. `timed, over raw pair` in
    /// `cargo bench --bench overhead` measures this.
    has_extras: bool,
    /// CUPTI recorded for another thread when the bracket was started or stopped.
    is_disturbed: bool,
    extras: Extras,
}

const _: () = {
    let end = std::mem::offset_of!(Bracket<crate::cuda::Context>, is_disturbed) + size_of::<bool>();
    assert!(end <= 2 * 64, "a bracket without extras touches two cache lines");
};

impl Extras {
    const NONE: Extras = Extras {
        feeding: Feeding::Unknown,
        held: None,
        delay_ns: None,
        began_ns: None,
        thread_id: None,
        prepared: None,
        passed: None,
    };
}

impl<G: Gpu> Bracket<G> {
    /// Creates a bracket with new events.
    pub fn new(gpu: &'static G, subject: BracketSubject) -> Result<Box<Self>, Fault> {
        Ok(Box::new(Bracket {
            gpu,
            pair: gpu.create_pair()?,
            stopped_ns: 0,
            opened: NestingMark::default(),
            closed: NestingMark::default(),
            subject,
            has_extras: false,
            is_disturbed: false,
            extras: Extras::NONE,
        }))
    }

    /// Sets the next subject of an idle bracket.
    #[inline(always)]
    pub fn assign(&mut self, subject: BracketSubject) {
        self.subject = subject;
        self.has_extras = false;
    }

    /// Sets the stream state on which the bracket has just been opened.
    #[inline]
    pub fn open_on(&mut self, stream_state: &'static StreamState, opened: NestingMark) {
        self.subject.stream_state = stream_state;
        self.opened = opened;
    }

    /// Enqueues the preparation, then records the start. With `by_host`, reads the host clock too.
    /// `thread_id` is the calling thread's id, given for a per-thread stream.
    #[inline]
    pub fn start(
        &mut self,
        prepare: Preparation,
        by_host: bool,
        thread_id: Option<u64>,
    ) -> Result<(), Fault> {
        self.is_disturbed = switches::is_recording();
        if by_host || thread_id.is_some() || prepare.hold.is_some() {
            self.set_extras(prepare.hold, by_host, thread_id);
        }
        if prepare != Preparation::default() && timeline::is_on() {
            self.set_prepared(prepare);
        }
        let held = start(self.gpu, self.subject.stream, &self.pair, prepare)?;
        if let Some(extras) = self.extras_mut() {
            extras.held = held;
        }
        Ok(())
    }

    #[cold]
    fn set_extras(&mut self, hold: Option<HoldPlan>, by_host: bool, thread_id: Option<u64>) {
        let delay_ns = match hold {
            Some(HoldPlan::For(ns)) => Some(ns),
            _ => None,
        };
        let began_ns = (by_host || hold.is_some()).then(|| self.gpu.now_ns());
        (self.has_extras, self.extras) =
            (true, Extras { delay_ns, began_ns, thread_id, ..Extras::NONE });
    }

    #[cold]
    fn set_prepared(&mut self, Preparation { cold, hold }: Preparation) {
        if !self.has_extras {
            (self.has_extras, self.extras) = (true, Extras::NONE);
        }
        let began_ns = self.gpu.now_ns();
        let (flushes, holds) = (cold.is_some(), hold.is_some());
        self.extras.prepared = Some(BracketPreparation { began_ns, flushes, holds });
    }

    /// Records the stop, releases the stream and closes the bracket.
    #[inline]
    pub fn stop(&mut self) -> Result<(), Fault> {
        let held = self.extras_mut().and_then(|extras| extras.held.take());
        let stopped = stop(self.gpu, self.subject.stream, &self.pair, held);
        self.closed = self.subject.stream_state.close();
        let released = stopped?;
        self.is_disturbed |= switches::is_recording();
        self.stopped_ns = self.gpu.now_ns();
        if self.has_extras {
            self.learn_feeding(released);
        }
        Ok(())
    }

    #[cold]
    fn learn_feeding(&mut self, released: Option<HoldResult>) {
        let Extras { began_ns, delay_ns, .. } = self.extras;
        // A clock that has gone backwards proves nothing.
        let took_ns = began_ns.and_then(|began_ns| self.stopped_ns.checked_sub(began_ns));
        let Some(took_ns) = took_ns else { return };
        self.extras.feeding = match (released, delay_ns) {
            (Some(hold), _) => Feeding::Held(hold),
            // The hold cannot have begun before the host started to enqueue it.
            (None, Some(ns)) if took_ns.saturating_add(TIMER_STEP_NS) <= ns => Feeding::Certain,
            (None, _) => Feeding::Host(took_ns),
        };
        if self.subject.site.settings().hold == Some(Hold::UntilEnqueued) {
            let by_deadline = released.map(|hold| self.gpu.has_expired(hold));
            self.subject.site.hold_deadline().enqueued(took_ns, by_deadline);
        }
    }

    #[inline]
    fn extras(&self) -> Option<&Extras> {
        self.has_extras.then_some(&self.extras)
    }

    #[inline]
    fn extras_mut(&mut self) -> Option<&mut Extras> {
        self.has_extras.then_some(&mut self.extras)
    }

    #[inline]
    fn feeding(&self) -> Feeding {
        self.extras().map_or(Feeding::Unknown, |extras| extras.feeding)
    }

    /// Returns the thread that started the bracket, if it is on a per-thread stream.
    #[inline]
    pub fn thread_id(&self) -> Option<u64> {
        self.extras()?.thread_id
    }

    /// Sets the feeding evidence.
    #[cfg(test)]
    pub fn set_feeding(&mut self, feeding: Feeding) {
        (self.has_extras, self.extras) = (true, Extras { feeding, ..Extras::NONE });
    }

    /// Returns how long the stream was held, in nanoseconds. Valid after the stop.
    #[cold]
    pub fn held_ns(&self) -> f64 {
        let Some(extras) = self.extras() else { return 0.0 };
        let by_host = || Some(self.stopped_ns.saturating_sub(extras.began_ns?));
        let held = match extras.feeding {
            Feeding::Held(_) => by_host(),
            _ => extras.delay_ns,
        };
        held.unwrap_or(0) as f64
    }

    /// Closes the bracket and releases the stream without recording a stop.
    pub fn close(&mut self) {
        self.subject.stream_state.close();
        let held = self.extras_mut().and_then(|extras| extras.held.take());
        release(self.gpu, held);
    }

    /// Converts the raw time to a sample.
    ///
    /// `behind_ns` is the host time at which enough further brackets had been enqueued to form a queue, or
    /// `None` if there are too few.
    #[inline]
    pub fn sample(
        &self,
        raw_ns: f64,
        detector: &mut FeedDetector,
        behind_ns: Option<u64>,
    ) -> Result<Sample, Lost> {
        let sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        let known = self.feeding().is_fed(raw_ns, |hold| self.has_expired(hold));
        let shows_pace = self.shows_pace();
        let (fed, queued) = match known {
            // Already decided. The time at which the GPU passed the bracket would only tell whether
            // a queue was behind it, and there is none.
            Some(fed) if behind_ns.is_none() && !shows_pace => {
                detector.skip();
                (fed, false)
            }
            known => {
                let came_late = detector.pass(self.gpu, &self.times(raw_ns));
                if shows_pace {
                    self.subject.site.cost.count_pace(came_late);
                }
                let fed = known.unwrap_or(came_late);
                (fed, fed && detector.is_past(behind_ns))
            }
        };
        let fed = fed && !disturbance::spoils(self.is_disturbed);
        let flags = SampleFlags {
            fed,
            queued: queued && fed,
            at_floor: self.gpu.is_at_floor(raw_ns),
            nested: self.is_nested(),
            tracked: self.subject.tracked,
        };
        let inner = self.closed.opened_since(self.opened);
        let added_ns = match inner {
            Some(0) if !flags.queued => Some(0.0),
            // While the GPU waits for the host, it passes the others meanwhile.
            Some(_) if !fed => Some(0.0),
            Some(inner) => self.gpu.added_ns(inner, flags.queued),
            None => None,
        };
        let sample = sample.at(self.stopped_ns).weighted(self.subject.weight);
        Ok(sample.around(inner, added_ns).flagged(flags))
    }

    /// Returns `true` if the budget needs to know whether the GPU was behind, and the GPU was not
    /// kept busy by this bracket's own hold or flush.
    #[inline]
    fn shows_pace(&self) -> bool {
        let is_delayed = || self.extras().is_some_and(|extras| extras.delay_ns.is_some());
        cost::is_on()
            && matches!(self.feeding(), Feeding::Host(_) | Feeding::Unknown)
            && !is_delayed()
            && self.subject.site.settings().cold.is_none()
    }

    #[inline]
    fn times(&self, raw_ns: f64) -> BracketTimes {
        BracketTimes { start: self.pair.start, raw_ns, stopped_ns: self.stopped_ns }
    }

    /// Computes when the GPU reached the start and stop events, and stores these times for the trace.
    #[cold]
    pub fn set_moments(&mut self, sample: Sample, detector: &mut FeedDetector) {
        let passed = detector.moments(self.gpu, &self.pair.start, sample.raw_ns());
        if !self.has_extras {
            (self.has_extras, self.extras) = (true, Extras::NONE);
        }
        self.extras.passed = passed;
    }

    /// Returns the bracket's slice for a trace, or `None` if the time at which the GPU passed it is
    /// unknown.
    #[cold]
    pub fn slice(&self, id: &'static SeriesId, sample: Sample) -> Option<Slice> {
        let BracketSubject { site, stream, stream_state, call_id, .. } = self.subject;
        Some(Slice {
            site,
            series: id,
            stream,
            stream_state,
            thread_id: self.thread_id(),
            call: call_id,
            sample,
            prepared: self.extras()?.prepared,
            passed: self.extras()?.passed?,
            marks: [self.opened, self.closed],
            enqueued_ns: self.stopped_ns,
        })
    }

    /// Returns `true` if at least this many brackets were opened after this one had been closed, until `last` was. Others
    /// that were closed later may be around this one, and only their stops are behind it.
    #[inline]
    pub fn is_before(&self, brackets: usize, last: &Bracket<G>) -> bool {
        last.closed.openings_since(self.closed) as usize >= brackets
    }

    /// Returns `true` if another bracket's events may lie inside.
    #[inline]
    fn is_nested(&self) -> bool {
        self.closed != self.opened
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        let expired = self.gpu.has_expired(hold);
        self.subject.site.hold_deadline().count(expired);
        expired
    }
}

// Every bracket has the same order: flush, hold, start, the user's work, stop, release. The hold is
// released even if a later step fails.

/// Enqueues the flush and the hold, then records the start. Returns the hold that [`stop`] must
/// release.
#[inline]
pub(crate) fn start<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    prepare: Preparation,
) -> Result<Option<StreamHold>, Fault> {
    let held =
        if prepare == Preparation::default() { None } else { enqueue(gpu, stream, prepare)? };
    match gpu.record_start(pair, stream) {
        Ok(()) => Ok(held),
        Err(fault) => {
            release(gpu, held);
            Err(fault)
        }
    }
}

/// Enqueues the flush and the hold. If no hold is free, the bracket runs unheld.
#[cold]
fn enqueue<G: Gpu>(
    gpu: &G,
    stream: Stream,
    prepare: Preparation,
) -> Result<Option<StreamHold>, Fault> {
    if let Some(cold) = prepare.cold {
        gpu.flush(stream, cold)?;
    }
    match prepare.hold {
        None => Ok(None),
        Some(HoldPlan::For(ns)) => gpu.delay(stream, ns).map(|()| None),
        Some(HoldPlan::Until(deadline_ns)) => match gpu.hold(stream, deadline_ns) {
            Ok(held) => Ok(Some(held)),
            Err(Fault::Exhausted) => Ok(None),
            Err(fault) => Err(fault),
        },
    }
}

/// Records the stop and releases the hold, even if recording the stop fails.
#[inline]
pub(crate) fn stop<G: Gpu>(
    gpu: &G,
    stream: Stream,
    pair: &EventPair,
    held: Option<StreamHold>,
) -> Result<Option<HoldResult>, Fault> {
    let stopped = gpu.record_stop(pair, stream);
    let released = held.map(|held| gpu.release(held));
    stopped.map(|()| released)
}

/// Releases the hold of a bracket that will have no stop.
pub(crate) fn release<G: Gpu>(gpu: &G, held: Option<StreamHold>) {
    held.map(|held| gpu.release(held));
}

#[cfg(test)]
mod tests;
