//! One bracket: a pair of events around work of the user's.

use crate::gpu::{Fault, Gpu, Held, HoldResult};
use crate::gpu::{HoldPlan, Preparation};
use crate::record::call_sums::SumId;
use crate::record::feeding::{BracketTimes, FeedDetector, StreamPosition};
use crate::record::sequence::{self};
use crate::record::series_counters::SeriesRef;
use crate::record::stream_state::{Mark, StreamState};
use crate::record::timeline::{CallId, Slice};
use crate::site::callsite::CallSite;
use crate::site::cost;
use crate::site::series_id::SeriesId;
use crate::stats::clock_fit::Moment;
use crate::types::attribute::Hold;
use crate::types::handles::{EventPair, Stream};
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// Share of the measured time that the host may take to enqueue a bracket without a hold, for the
/// sample to count as fed.
const HOST_SHARE: f64 = 0.01;

/// A hold of fixed length ends by `%globaltimer`, which moves in steps of 32 ns on some parts and of this on
/// others. One that begins just before a step ends so much early.
const TIMER_STEP_NS: u64 = 1_024;

/// What is known about whether the GPU waited for the host inside a bracket, when its stop has been
/// enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeding {
    /// The stream was held until the host had enqueued the stop, unless the hold expired.
    Held(HoldResult),
    /// The stop was enqueued before a hold of fixed length can have ended.
    Certain,
    /// The host took so many nanoseconds from before the start record to after the stop record.
    Host(u64),
    /// Nothing: it depends on when the GPU reached the start.
    Unknown,
}

/// What a bracket is about.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub site: &'static CallSite,
    pub stream: Stream,
    pub stream_state: &'static StreamState,
    pub entry: SeriesRef,
    /// The call that it is a launch of, if it does not go around a whole body.
    pub call: Option<SumId>,
    /// The call as a trace knows it.
    pub call_id: CallId,
    /// cudarc puts waits and records of its own around what is launched.
    pub tracked: bool,
    /// How many calls its own stands for.
    pub weight: f32,
    /// What is to be counted with its sample.
    pub workload: Workload,
}

/// What a bracket has that is held, that lies on a stream which each thread has its own of, or that the host's
/// time may prove fed.
struct Special {
    feeding: Feeding,
    held: Option<Held>,
    /// The stream is held for so many nanoseconds.
    delay_ns: Option<u64>,
    /// The host's time before everything, where that matters.
    began_ns: Option<u64>,
    /// The thread of the start, where that matters.
    thread_id: Option<u64>,
    /// When the GPU passed its events, where a trace asks for it and it is known.
    passed: Option<[Moment; 2]>,
}

/// A value that is mostly not there. Unlike in an `Option`, what says so comes first, and the memory behind it
/// is touched only where it is there.
#[repr(C)]
struct Rare<T> {
    is_there: bool,
    value: T,
}

impl<T> Rare<T> {
    #[inline]
    fn get(&self) -> Option<&T> {
        self.is_there.then_some(&self.value)
    }

    #[inline]
    fn get_mut(&mut self) -> Option<&mut T> {
        self.is_there.then_some(&mut self.value)
    }

    #[inline]
    fn clear(&mut self) {
        self.is_there = false;
    }

    fn set(&mut self, value: T) {
        *self = Rare { is_there: true, value };
    }
}

/// A pair of events and what it serves for.
///
/// Invariant: idle, open or pending, and exactly one of these, because it is owned by a pool, by the
/// scope of a call, or by a queue. Brackets are boxed, made on demand and reused.
#[repr(C, align(64))] // a plain one lies in two lines of memory: it is out of the caches again and again
pub(crate) struct Bracket<G: Gpu> {
    pub gpu: &'static G,
    pub pair: EventPair,
    /// The host's time after the stop record.
    pub stopped_ns: u64,
    begun: Mark,
    ended: Mark,
    pub subject: Subject,
    special: Rare<Special>,
}

const _: () = {
    let end = std::mem::offset_of!(Bracket<crate::cuda::Context>, special) + size_of::<bool>();
    assert!(end <= 2 * 64, "what a plain bracket touches");
};

impl Special {
    const NONE: Special = Special {
        feeding: Feeding::Unknown,
        held: None,
        delay_ns: None,
        began_ns: None,
        thread_id: None,
        passed: None,
    };
}

impl<G: Gpu> Bracket<G> {
    /// A bracket with new events.
    pub fn new(gpu: &'static G, subject: Subject) -> Result<Box<Self>, Fault> {
        let pair = EventPair { start: gpu.create_event()?, stop: gpu.create_event()? };
        Ok(Box::new(Bracket {
            gpu,
            pair,
            stopped_ns: 0,
            begun: Mark::default(),
            ended: Mark::default(),
            subject,
            special: Rare { is_there: false, value: Special::NONE },
        }))
    }

    /// Takes the bracket into use for something else.
    #[inline(always)]
    pub fn renew(&mut self, subject: Subject) {
        self.subject = subject;
        self.special.clear();
    }

    /// Opens the bracket on its stream: from here on others know of it.
    #[inline]
    pub fn open(&mut self) {
        self.begun = self.subject.stream_state.begin();
    }

    /// Records the start, after what is to precede it. With `by_host`, the host's clock is read too. The
    /// `thread` is the calling one, where the stream is its own.
    #[inline]
    pub fn start(
        &mut self,
        prepare: Preparation,
        by_host: bool,
        thread_id: Option<u64>,
    ) -> Result<(), Fault> {
        if by_host || thread_id.is_some() || prepare.hold.is_some() {
            self.expect_more(prepare.hold, by_host, thread_id);
        }
        let held = sequence::begin(self.gpu, self.subject.stream, &self.pair, prepare)?;
        if let Some(special) = self.special.get_mut() {
            special.held = held;
        }
        Ok(())
    }

    #[cold]
    fn expect_more(&mut self, hold: Option<HoldPlan>, by_host: bool, thread_id: Option<u64>) {
        let delay_ns = match hold {
            Some(HoldPlan::For(ns)) => Some(ns),
            _ => None,
        };
        let began_ns = (by_host || hold.is_some()).then(|| self.gpu.now_ns());
        self.special.set(Special { delay_ns, began_ns, thread_id, ..Special::NONE });
    }

    /// Records the stop, lets the stream go, and closes the bracket.
    #[inline]
    pub fn stop(&mut self) -> Result<(), Fault> {
        let held = self.special.get_mut().and_then(|special| special.held.take());
        let ended = sequence::end(self.gpu, self.subject.stream, &self.pair, held);
        self.ended = self.subject.stream_state.end();
        let released = ended?;
        self.stopped_ns = self.gpu.now_ns();
        if self.special.is_there {
            self.learn_feeding(released);
        }
        Ok(())
    }

    #[cold]
    fn learn_feeding(&mut self, released: Option<HoldResult>) {
        let Some(special) = self.special.get_mut() else { return };
        // A clock that has stepped back meanwhile shows nothing.
        let took_ns = special.began_ns.and_then(|began_ns| self.stopped_ns.checked_sub(began_ns));
        let Some(took_ns) = took_ns else { return };
        special.feeding = match (released, special.delay_ns) {
            (Some(hold), _) => Feeding::Held(hold),
            // The hold began no earlier than the host began to enqueue it.
            (None, Some(ns)) if took_ns.saturating_add(TIMER_STEP_NS) <= ns => Feeding::Certain,
            (None, _) => Feeding::Host(took_ns),
        };
        if self.subject.site.settings().hold == Some(Hold::UntilEnqueued) {
            let by_deadline = released.map(|hold| self.gpu.has_expired(hold));
            self.subject.site.hold_deadline().enqueued(took_ns, by_deadline);
        }
    }

    /// What is known about whether the GPU waited inside.
    #[inline]
    fn feeding(&self) -> Feeding {
        self.special.get().map_or(Feeding::Unknown, |special| special.feeding)
    }

    /// The thread of the start, on a stream that each thread has its own of.
    #[inline]
    pub fn thread_id(&self) -> Option<u64> {
        self.special.get()?.thread_id
    }

    /// The scripted GPU's word on it.
    #[cfg(test)]
    pub fn set_feeding(&mut self, feeding: Feeding) {
        self.special.set(Special { feeding, ..Special::NONE });
    }

    /// How long the stream stood still for the bracket, once it is stopped, in nanoseconds.
    #[cold]
    pub fn held_ns(&self) -> f64 {
        let Some(special) = self.special.get() else { return 0.0 };
        let by_host = || Some(self.stopped_ns.saturating_sub(special.began_ns?));
        let held = match special.feeding {
            Feeding::Held(_) => by_host(),
            _ => special.delay_ns,
        };
        held.unwrap_or(0) as f64
    }

    /// Closes the bracket and lets the stream go, without a stop that counts.
    pub fn abandon(&mut self) {
        self.subject.stream_state.end();
        let held = self.special.get_mut().and_then(|special| special.held.take());
        sequence::abandon(self.gpu, held);
    }

    /// What the raw time says, together with what is known of the bracket. `passage` is the GPU's way
    /// through the brackets of this stream so far; `behind_ns` says when the host had enqueued so many
    /// more that they make a queue.
    #[inline]
    pub fn sample(
        &self,
        raw_ns: f64,
        passage: &mut FeedDetector,
        behind_ns: Option<u64>,
    ) -> Result<Sample, Lost> {
        let mut sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        let known = match self.feeding() {
            Feeding::Held(hold) => Some(!self.has_expired(hold)),
            Feeding::Certain => Some(true),
            Feeding::Host(ns) if ns as f64 <= raw_ns * HOST_SHARE => Some(true),
            Feeding::Host(_) | Feeding::Unknown => None,
        };
        match known {
            // When the GPU was here matters only for how much was behind.
            Some(fed) if behind_ns.is_none() && !self.shows_pace() => {
                sample.fed = fed;
                passage.skip();
            }
            known => {
                let came_late = passage.reaches(self.gpu, &self.crossing(raw_ns));
                if self.shows_pace() {
                    self.subject.site.cost.count_pace(came_late);
                }
                sample.fed = known.unwrap_or(came_late);
                sample.queued = sample.fed && passage.is_past(behind_ns);
            }
        }
        sample.at_ns = self.stopped_ns;
        sample.weight = self.subject.weight;
        sample.at_floor = self.gpu.is_at_floor(raw_ns);
        sample.nested = self.is_nested();
        sample.tracked = self.subject.tracked;
        Ok(sample)
    }

    /// Returns `true` if the budget wants to know whether the GPU was behind, and neither a hold nor a
    /// flush of the bracket's own kept the GPU busy.
    #[inline]
    fn shows_pace(&self) -> bool {
        cost::is_on()
            && matches!(self.feeding(), Feeding::Host(_) | Feeding::Unknown)
            && self.subject.site.settings().cold.is_none()
    }

    /// What the GPU's way through the stream has to know of the bracket.
    #[inline]
    fn crossing(&self, raw_ns: f64) -> BracketTimes {
        let Bracket { stopped_ns, begun, ended, .. } = *self;
        let closed = StreamPosition { stream_state: self.subject.stream_state, ended };
        BracketTimes { start: self.pair.start, raw_ns, stopped_ns, begun, closed }
    }

    /// Asks when the GPU passed its events, for a trace.
    #[cold]
    pub fn date(&mut self, sample: Sample, passage: &mut FeedDetector) {
        let passed = passage.date(self.gpu, &self.pair.start, sample.raw_ns());
        if !self.special.is_there {
            self.special.set(Special::NONE);
        }
        self.special.value.passed = passed;
    }

    /// What a trace shows of it, if its place in time is known.
    #[cold]
    pub fn slice(&self, row: &'static SeriesId, sample: Sample) -> Option<Slice> {
        let Subject { site, stream, stream_state, call_id, .. } = self.subject;
        Some(Slice {
            site,
            series: row,
            stream,
            stream_state,
            thread_id: self.thread_id(),
            call: call_id,
            sample,
            passed: self.special.get()?.passed?,
            marks: [self.begun, self.ended],
            enqueued_ns: self.stopped_ns,
        })
    }

    /// Whether events of another bracket may lie inside.
    #[inline]
    fn is_nested(&self) -> bool {
        self.ended != self.begun
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        let expired = self.gpu.has_expired(hold);
        self.subject.site.hold_deadline().count(expired);
        expired
    }
}
