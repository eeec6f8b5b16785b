//! One bracket: a pair of events around work of the user's.

use std::time::{Duration, Instant};

use crate::calls::CallRef;
use crate::gpu::{EventPair, Fault, Gpu, Held, HoldResult, Stream};
use crate::recorder::{self, HoldPlan, Preparation};
use crate::rows::EntryRef;
use crate::sample::{Lost, Sample};
use crate::site::{CallSite, Hold};

/// Share of the measured time that the host may take to enqueue a bracket without a hold, for the
/// sample to count as fed.
const HOST_SHARE: f64 = 0.01;

/// What is known about whether the GPU waited for the host inside a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeding {
    /// The stream was held until the host had enqueued the stop, unless the hold expired.
    Held(HoldResult),
    /// The stop was enqueued before a hold of fixed length can have ended.
    Certain,
    /// The host took so many nanoseconds from before the start record to after the stop record.
    Host(u64),
    /// Nothing is known.
    Unknown,
}

/// What a bracket is about.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub site: &'static CallSite,
    pub stream: Stream,
    pub entry: EntryRef,
    /// The call that it is a launch of, if it does not go around a whole body.
    pub call: Option<CallRef>,
    /// cudarc puts waits and records of its own around what is launched.
    pub tracked: bool,
}

/// A pair of events and what it serves for.
///
/// Invariant: idle, open or pending, and exactly one of these, because it is owned by a pool, by the
/// scope of a call, or by a queue. Brackets are boxed, made on demand and reused.
pub(crate) struct Bracket<G: Gpu> {
    pub gpu: &'static G,
    pub pair: EventPair,
    pub subject: Subject,
    pub nested: bool,
    pub feeding: Feeding,
    /// The thread of the start, on a stream that each thread has its own of.
    pub thread: Option<u64>,
    held: Option<Held>,
    /// The stream is held for so many nanoseconds.
    delay_ns: Option<u64>,
    began: Option<Instant>,
}

impl<G: Gpu> Bracket<G> {
    /// A bracket with new events.
    pub fn new(gpu: &'static G, subject: Subject) -> Result<Box<Self>, Fault> {
        let pair = EventPair { start: gpu.create_event()?, stop: gpu.create_event()? };
        Ok(Box::new(Bracket {
            gpu,
            pair,
            subject,
            nested: false,
            feeding: Feeding::Unknown,
            thread: None,
            held: None,
            delay_ns: None,
            began: None,
        }))
    }

    /// Takes the bracket into use for something else.
    pub fn renew(&mut self, subject: Subject) {
        self.subject = subject;
        self.nested = false;
        self.feeding = Feeding::Unknown;
    }

    /// Records the start, after what is to precede it. With `by_host`, the host's clock is read too.
    pub fn start(&mut self, prepare: Preparation, by_host: bool) -> Result<(), Fault> {
        self.began = (by_host || prepare.hold.is_some()).then(Instant::now);
        self.delay_ns = match prepare.hold {
            Some(HoldPlan::For(ns)) => Some(ns),
            _ => None,
        };
        self.held = recorder::begin(self.gpu, self.subject.stream, &self.pair, prepare)?;
        Ok(())
    }

    /// Records the stop and lets the stream go.
    pub fn stop(&mut self) -> Result<(), Fault> {
        let held = self.held.take();
        let released = recorder::end(self.gpu, self.subject.stream, &self.pair, held)?;
        let Some(began) = self.began else { return Ok(()) };
        let took = began.elapsed();
        self.feeding = match (released, self.delay_ns) {
            (Some(hold), _) => Feeding::Held(hold),
            // The hold began no earlier than the host began to enqueue it.
            (None, Some(ns)) if took <= Duration::from_nanos(ns) => Feeding::Certain,
            (None, _) => Feeding::Host(took.as_nanos() as u64),
        };
        if self.subject.site.settings().hold == Some(Hold::UntilEnqueued) {
            self.subject.site.hold_policy().enqueued_in(took);
        }
        Ok(())
    }

    /// Lets the stream go without a stop.
    pub fn abandon(&mut self) {
        recorder::abandon(self.gpu, self.held.take());
    }

    /// What the elapsed time says, together with what is known of the bracket.
    pub fn outcome(&self, elapsed: Result<f64, Fault>) -> Result<Sample, Lost> {
        let raw_ns = elapsed.map_err(Lost::from)?;
        let mut sample = Sample::new(raw_ns).ok_or(Lost::Invalid)?;
        sample.fed = match self.feeding {
            Feeding::Held(hold) => !self.has_expired(hold),
            Feeding::Certain => true,
            Feeding::Host(ns) => ns as f64 <= raw_ns * HOST_SHARE,
            Feeding::Unknown => false,
        };
        sample.at_floor = self.gpu.is_at_floor(raw_ns);
        sample.nested = self.nested;
        sample.tracked = self.subject.tracked;
        Ok(sample)
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        let expired = self.gpu.has_expired(hold);
        self.subject.site.hold_policy().ended(expired);
        expired
    }
}
