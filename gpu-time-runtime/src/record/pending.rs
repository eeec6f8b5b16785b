//! Brackets that were enqueued and that the GPU has not been seen to pass.

use std::collections::VecDeque;
use std::{mem, ptr};

use crate::gpu::{Fault, Gpu};
use crate::record::bracket::Bracket;
use crate::record::feeding::FeedDetector;
use crate::record::timeline;
use crate::types::handles::Stream;
use crate::types::sample::{Lost, Sample};

/// So many brackets come together before anyone looks whether the first have finished.
pub(crate) const BATCH: usize = 32;

/// So many brackets behind one make a queue: with fewer, its events read as if it were alone. Seen on
/// an H200: the last eight or so of many in a row read as single ones do, and those before them more.
const QUEUE: usize = 8;

/// The pending brackets of one lane, in a queue for each stream.
///
/// Invariants: a queue is in the order of its stops, as far as one thread recorded them; looking
/// never waits. The number of brackets is bounded by what a lane's pools may make, and an empty
/// queue serves the next stream that has none.
pub(crate) struct Pending<G: Gpu> {
    queues: Vec<Queue<G>>,
    /// Brackets added since anyone looked.
    unseen: usize,
}

/// Of one stream: what the GPU has passed in it says something of what comes behind.
struct Queue<G: Gpu> {
    gpu: &'static G,
    stream: Stream,
    /// Whose stream it is, where each thread has its own.
    thread_id: Option<u64>,
    pending: VecDeque<Box<Bracket<G>>>,
}

impl<G: Gpu> Queue<G> {
    fn is_same(&self, other: &Queue<G>) -> bool {
        self.stream == other.stream
            && self.thread_id == other.thread_id
            && ptr::eq(self.gpu, other.gpu)
    }
}

/// What is pending on a lane, in the hands of who looks at it.
///
/// Invariant: a lane has one at most. Until it is given back, its brackets count as in flight.
pub(crate) struct Drain<G: Gpu> {
    pub in_flight: Pending<G>,
    pub found: Vec<FinishedBracket<G>>,
}

/// A bracket that the GPU has passed, or whose events answer with a fault.
pub(crate) struct FinishedBracket<G: Gpu> {
    pub bracket: Box<Bracket<G>>,
    pub outcome: Result<Result<Sample, Lost>, Fault>,
}

impl<G: Gpu> Default for Pending<G> {
    fn default() -> Self {
        Pending { queues: Vec::new(), unseen: 0 }
    }
}

impl<G: Gpu> Pending<G> {
    /// Adds a bracket whose stop has just been recorded. Answers whether a batch has come together
    /// since anyone looked.
    #[inline]
    pub fn push(&mut self, bracket: Box<Bracket<G>>) -> bool {
        let (stream, thread_id) = (bracket.subject.stream, bracket.thread_id());
        let is_its = |queue: &&mut Queue<G>| {
            queue.stream == stream
                && queue.thread_id == thread_id
                && ptr::eq(queue.gpu, bracket.gpu)
        };
        match self.queues.iter_mut().find(is_its) {
            Some(queue) => queue.pending.push_back(bracket),
            None => self.push_first(bracket),
        }
        self.unseen += 1;
        self.unseen >= BATCH
    }

    #[cold]
    fn push_first(&mut self, bracket: Box<Bracket<G>>) {
        let (gpu, stream, thread_id) = (bracket.gpu, bracket.subject.stream, bracket.thread_id());
        match self.queues.iter_mut().find(|queue| queue.pending.is_empty()) {
            Some(queue) => {
                (queue.gpu, queue.stream, queue.thread_id) = (gpu, stream, thread_id);
                queue.pending.push_back(bracket);
            }
            None => {
                let mut pending = VecDeque::with_capacity(BATCH * 4);
                pending.push_back(bracket);
                self.queues.push(Queue { gpu, stream, thread_id, pending });
            }
        }
    }

    /// Takes back what somebody looked at, which is older than what came meanwhile.
    pub fn put_back(&mut self, older: Pending<G>) {
        let newer = mem::replace(self, older);
        self.unseen = newer.unseen;
        for mut queue in newer.queues.into_iter().filter(|queue| !queue.pending.is_empty()) {
            if let Some(known) = self.queues.iter_mut().find(|known| known.is_same(&queue)) {
                known.pending.append(&mut queue.pending);
            } else if let Some(empty) = self.queues.iter_mut().find(|q| q.pending.is_empty()) {
                *empty = queue;
            } else {
                self.queues.push(queue);
            }
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|q| q.pending.is_empty())
    }

    /// Hands every bracket that the GPU has passed to `settle`, with its sample, why there is none,
    /// or the fault of its events, and with the GPU's way so far: on each stream from the oldest to the
    /// first that is not finished.
    pub fn drain(
        &mut self,
        mut settle: impl FnMut(Box<Bracket<G>>, Result<Result<Sample, Lost>, Fault>, &mut FeedDetector),
    ) {
        for queue in self.queues.iter_mut().filter(|queue| !queue.pending.is_empty()) {
            let alive = queue.gpu.check_alive();
            let mut passage = FeedDetector::new(alive.ok().and_then(|()| queue.gpu.clock()));
            while let Some(oldest) = queue.pending.front() {
                let raw_ns = match alive.and_then(|()| oldest.gpu.elapsed(&oldest.pair)) {
                    Ok(Some(ns)) => Ok(ns),
                    Ok(None) => break,
                    Err(fault) => Err(fault),
                };
                let Some(bracket) = queue.pending.pop_front() else { break };
                let behind_ns = queue.pending.get(QUEUE - 1).map(|behind| behind.stopped_ns);
                let outcome = raw_ns.map(|ns| bracket.sample(ns, &mut passage, behind_ns));
                settle(bracket, outcome, &mut passage);
            }
        }
    }
}

impl<G: Gpu> Drain<G> {
    /// Asks the driver.
    pub fn run(&mut self) {
        let found = &mut self.found;
        self.in_flight.drain(|bracket, outcome, passage| {
            if matches!(outcome, Err(Fault::Captured)) {
                bracket.gpu.discard(&bracket.pair);
            }
            found.push(FinishedBracket { bracket, outcome });
            if timeline::is_on()
                && let Some(last) = found.last_mut()
            {
                last.date(passage);
            }
        });
    }
}

impl<G: Gpu> FinishedBracket<G> {
    /// Asks when the GPU passed it, for a trace.
    #[cold]
    fn date(&mut self, passage: &mut FeedDetector) {
        if let Ok(Ok(sample)) = self.outcome {
            self.bracket.date(sample, passage);
        }
    }
}
