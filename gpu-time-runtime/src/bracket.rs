//! One bracket: a pair of events around work of the user's.

use crate::calls::CallRef;
use crate::gpu::{EventPair, Fault, Gpu, Held, HoldResult, Stream};
use crate::passage::{Moment, Passage};
use crate::recorder::{self, HoldPlan, Preparation};
use crate::rows::EntryRef;
use crate::sample::{Lost, Sample};
use crate::site::{CallSite, Hold, Row};
use crate::trace::{CallId, Slice};
use crate::track::{Mark, Track};
use crate::workload::Workload;

/// Share of the measured time that the host may take to enqueue a bracket without a hold, for the
/// sample to count as fed.
const HOST_SHARE: f64 = 0.01;

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
    pub track: &'static Track,
    pub entry: EntryRef,
    /// The call that it is a launch of, if it does not go around a whole body.
    pub call: Option<CallRef>,
    /// The call as a trace knows it.
    pub call_id: CallId,
    /// cudarc puts waits and records of its own around what is launched.
    pub tracked: bool,
    /// How many calls its own stands for.
    pub weight: f32,
    /// What is to be counted with its sample.
    pub workload: Workload,
}

/// A pair of events and what it serves for.
///
/// Invariant: idle, open or pending, and exactly one of these, because it is owned by a pool, by the
/// scope of a call, or by a queue. Brackets are boxed, made on demand and reused.
pub(crate) struct Bracket<G: Gpu> {
    pub gpu: &'static G,
    pub pair: EventPair,
    pub subject: Subject,
    pub feeding: Feeding,
    /// The host's time after the stop record.
    pub stopped_ns: u64,
    /// The thread of the start, on a stream that each thread has its own of.
    pub thread: Option<u64>,
    begun: Mark,
    ended: Mark,
    held: Option<Held>,
    /// The stream is held for so many nanoseconds.
    delay_ns: Option<u64>,
    /// The host's time before everything, where that matters.
    began_ns: Option<u64>,
}

impl<G: Gpu> Bracket<G> {
    /// A bracket with new events.
    pub fn new(gpu: &'static G, subject: Subject) -> Result<Box<Self>, Fault> {
        let pair = EventPair { start: gpu.create_event()?, stop: gpu.create_event()? };
        Ok(Box::new(Bracket {
            gpu,
            pair,
            subject,
            feeding: Feeding::Unknown,
            stopped_ns: 0,
            thread: None,
            begun: Mark::default(),
            ended: Mark::default(),
            held: None,
            delay_ns: None,
            began_ns: None,
        }))
    }

    /// Takes the bracket into use for something else.
    #[inline]
    pub fn renew(&mut self, subject: Subject) {
        self.subject = subject;
        self.feeding = Feeding::Unknown;
    }

    /// Opens the bracket on its stream: from here on others know of it.
    #[inline]
    pub fn open(&mut self) {
        self.begun = self.subject.track.begin();
    }

    /// Records the start, after what is to precede it. With `by_host`, the host's clock is read too.
    #[inline]
    pub fn start(&mut self, prepare: Preparation, by_host: bool) -> Result<(), Fault> {
        self.began_ns = (by_host || prepare.hold.is_some()).then(|| self.gpu.now_ns());
        self.delay_ns = match prepare.hold {
            Some(HoldPlan::For(ns)) => Some(ns),
            _ => None,
        };
        self.held = recorder::begin(self.gpu, self.subject.stream, &self.pair, prepare)?;
        Ok(())
    }

    /// Records the stop, lets the stream go, and closes the bracket.
    #[inline]
    pub fn stop(&mut self) -> Result<(), Fault> {
        let held = self.held.take();
        let ended = recorder::end(self.gpu, self.subject.stream, &self.pair, held);
        self.ended = self.subject.track.end();
        let released = ended?;
        self.stopped_ns = self.gpu.now_ns();
        // A clock that has stepped back meanwhile shows nothing.
        if let Some(took_ns) = self.began_ns.and_then(|ns| self.stopped_ns.checked_sub(ns)) {
            self.learn_feeding(took_ns, released);
        }
        Ok(())
    }

    #[cold]
    fn learn_feeding(&mut self, took_ns: u64, released: Option<HoldResult>) {
        self.feeding = match (released, self.delay_ns) {
            (Some(hold), _) => Feeding::Held(hold),
            // The hold began no earlier than the host began to enqueue it.
            (None, Some(ns)) if took_ns <= ns => Feeding::Certain,
            (None, _) => Feeding::Host(took_ns),
        };
        if self.subject.site.settings().hold == Some(Hold::UntilEnqueued) {
            self.subject.site.hold_policy().enqueued_in(took_ns);
        }
    }

    /// How long the stream stood still for the bracket, once it is stopped, in nanoseconds.
    #[cold]
    pub fn held_ns(&self) -> f64 {
        let by_host = || Some(self.stopped_ns.saturating_sub(self.began_ns?));
        let held = match self.feeding {
            Feeding::Held(_) => by_host(),
            _ => self.delay_ns,
        };
        held.unwrap_or(0) as f64
    }

    /// Closes the bracket and lets the stream go, without a stop that counts.
    pub fn abandon(&mut self) {
        self.subject.track.end();
        recorder::abandon(self.gpu, self.held.take());
    }

    /// What the raw time says, together with what is known of the bracket. `passage` is the GPU's way
    /// through the brackets of this stream so far; `behind_ns` says when the host had enqueued so many
    /// more that they make a queue.
    #[inline]
    pub fn sample(
        &self,
        raw_ns: f64,
        passage: &mut Passage,
        behind_ns: Option<u64>,
    ) -> Result<Sample, Lost> {
        let mut sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        let known = match self.feeding {
            Feeding::Held(hold) => Some(!self.has_expired(hold)),
            Feeding::Certain => Some(true),
            Feeding::Host(ns) if ns as f64 <= raw_ns * HOST_SHARE => Some(true),
            Feeding::Host(_) | Feeding::Unknown => None,
        };
        match known {
            // When the GPU was here matters only for how much was behind.
            Some(fed) if behind_ns.is_none() => {
                sample.fed = fed;
                passage.skip();
            }
            known => {
                let came_late = passage.reaches(
                    self.gpu,
                    &self.pair.start,
                    raw_ns,
                    self.stopped_ns,
                    self.is_nested(),
                );
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

    /// When the GPU passed its events, if that is known.
    #[cold]
    pub fn dates(&self, sample: Sample, passage: &mut Passage) -> Option<[Moment; 2]> {
        passage.date(self.gpu, &self.pair.start, sample.raw_ns())
    }

    /// What a trace shows of it.
    #[cold]
    pub fn slice(&self, row: &'static Row, sample: Sample, dates: [Moment; 2]) -> Slice {
        let Subject { site, stream, track, call_id, .. } = self.subject;
        Slice {
            site,
            row,
            stream,
            track,
            thread: self.thread,
            call: call_id,
            sample,
            passed: dates,
            marks: [self.begun, self.ended],
            enqueued_ns: self.stopped_ns,
        }
    }

    /// Whether events of another bracket may lie inside.
    #[inline]
    fn is_nested(&self) -> bool {
        self.ended != self.begun
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        let expired = self.gpu.has_expired(hold);
        self.subject.site.hold_policy().ended(expired);
        expired
    }
}
