//! Closed brackets that the GPU is not yet known to have passed, and the drain that removes those
//! it has passed.

use std::collections::VecDeque;
use std::ptr;

use crate::gpu::{Fault, Gpu};
use crate::record::{bracket::Bracket, feeding::FeedDetector, timeline};
use crate::types::handles::Stream;
use crate::types::sample::{Lost, Sample};

/// The number of closed brackets that makes a drain worthwhile.
pub(crate) const BATCH: usize = 32;

/// The number of brackets that a drain finishes before handing them back for recycling. This is
/// more than a batch, so a typical drain hands back only once.
pub(crate) const HANDED_BACK: usize = 4 * BATCH;

/// The number of brackets behind another one that form a queue. With fewer of them, the events of the first
/// bracket read as if it were alone. On an H200, roughly the last eight brackets in a long row read like single
/// ones, and the earlier ones read higher.
const QUEUE: usize = 8;

/// One thread's pending brackets.
///
/// Brackets closed since the last drain began are in separate queues, to which the thread can add
/// more while another thread drains. Both sets of queues stay allocated, so closing a bracket does
/// not allocate after warm-up, even during a drain.
pub(crate) struct Pending<G: Gpu> {
    /// Brackets closed since the last drain began.
    new: Queues<G>,
    /// The number of brackets pushed since the last drain began.
    pushed: usize,
    /// The brackets left over from earlier drains; `None` while a thread is draining.
    drain: Option<Drain<G>>,
}

/// Queues of pending brackets, one per stream.
///
/// Invariant: a queue is in the order of its stops, provided that one thread recorded them. The
/// pools' limit also limits the number of brackets. An empty queue is reused for the next stream
/// that has none.
struct Queues<G: Gpu>(Vec<Queue<G>>);

/// One stream's brackets. The GPU's progress through earlier ones gives information about later
/// ones.
struct Queue<G: Gpu> {
    gpu: &'static G,
    stream: Stream,
    /// The thread that started them, if the handle refers to a different stream on every thread.
    thread_id: Option<u64>,
    brackets: VecDeque<Box<Bracket<G>>>,
}

/// One pass over a thread's pending brackets, made without holding that thread's lock.
///
/// Invariant: each thread recorder has exactly one, which is either stored in [`Pending`] or owned
/// by the draining thread. Its brackets count as in flight.
pub(crate) struct Drain<G: Gpu> {
    older: Queues<G>,
    /// The index of the next queue to drain.
    next: usize,
    /// Finished brackets not yet handed back; at most [`HANDED_BACK`].
    pub finished: Vec<FinishedBracket<G>>,
}

/// A bracket that the GPU has passed, or whose events return a fault.
pub(crate) struct FinishedBracket<G: Gpu> {
    pub bracket: Box<Bracket<G>>,
    pub outcome: Result<Result<Sample, Lost>, Fault>,
}

impl<G: Gpu> Default for Pending<G> {
    fn default() -> Self {
        let drain = Drain { older: Queues(Vec::new()), next: 0, finished: Vec::new() };
        Pending { new: Queues(Vec::new()), pushed: 0, drain: Some(drain) }
    }
}

impl<G: Gpu> Pending<G> {
    /// Adds a bracket whose stop has just been recorded. Returns `true` if a full batch has been
    /// added since the last drain.
    #[inline]
    pub fn push(&mut self, bracket: Box<Bracket<G>>) -> bool {
        self.new.push(bracket);
        self.pushed += 1;
        self.pushed >= BATCH
    }

    /// Hands the pending brackets over to the draining thread. Returns `None` if another thread is
    /// already draining.
    pub fn begin_drain(&mut self) -> Option<Drain<G>> {
        let mut drain = self.drain.take()?;
        // Drains do not allocate after the first one.
        drain.finished.reserve(HANDED_BACK);
        drain.older.append(&mut self.new);
        drain.next = 0;
        self.pushed = 0;
        Some(drain)
    }

    /// Takes back the brackets left over from the drain.
    pub fn end_drain(&mut self, drain: Drain<G>) {
        self.drain = Some(drain);
    }

    /// Returns `true` if no bracket is pending.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.drain.as_ref().is_some_and(|drain| drain.older.is_empty())
    }
}

impl<G: Gpu> Queues<G> {
    #[inline]
    fn push(&mut self, bracket: Box<Bracket<G>>) {
        let (gpu, stream, thread_id) = (bracket.gpu, bracket.subject.stream, bracket.thread_id());
        self.of(gpu, stream, thread_id).push_back(bracket);
    }

    /// Moves all brackets from `newer` to the end of these queues. The queues in `newer` stay
    /// allocated.
    fn append(&mut self, newer: &mut Queues<G>) {
        for queue in newer.0.iter_mut().filter(|queue| !queue.brackets.is_empty()) {
            self.of(queue.gpu, queue.stream, queue.thread_id).append(&mut queue.brackets);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|queue| queue.brackets.is_empty())
    }

    /// Returns the queue for a stream.
    #[inline]
    fn of(
        &mut self,
        gpu: &'static G,
        stream: Stream,
        thread_id: Option<u64>,
    ) -> &mut VecDeque<Box<Bracket<G>>> {
        let is_its = |queue: &Queue<G>| {
            queue.stream == stream && queue.thread_id == thread_id && ptr::eq(queue.gpu, gpu)
        };
        let at = match self.0.iter().position(is_its) {
            Some(at) => at,
            None => self.assign(gpu, stream, thread_id),
        };
        &mut self.0[at].brackets
    }

    /// Assigns an empty queue, or a new one, to a stream that has none.
    #[cold]
    fn assign(&mut self, gpu: &'static G, stream: Stream, thread_id: Option<u64>) -> usize {
        match self.0.iter_mut().position(|queue| queue.brackets.is_empty()) {
            Some(at) => {
                let queue = &mut self.0[at];
                (queue.gpu, queue.stream, queue.thread_id) = (gpu, stream, thread_id);
                at
            }
            None => {
                let brackets = VecDeque::with_capacity(HANDED_BACK);
                self.0.push(Queue { gpu, stream, thread_id, brackets });
                self.0.len() - 1
            }
        }
    }
}

impl<G: Gpu> Drain<G> {
    /// Queries which brackets the GPU has passed, on each stream from the oldest to the first
    /// unfinished one. Never waits for the GPU.
    ///
    /// Returns `true` at the end of the pass. If it returns `false`, `finished` is full and its
    /// brackets must be removed before the next call.
    pub fn run(&mut self) -> bool {
        while let Some(queue) = self.older.0.get_mut(self.next) {
            if !queue.drain(&mut self.finished) {
                return false;
            }
            self.next += 1;
        }
        true
    }
}

impl<G: Gpu> Queue<G> {
    /// Moves the brackets that the GPU has passed to `finished`. Returns `false` if `finished` is
    /// full.
    fn drain(&mut self, finished: &mut Vec<FinishedBracket<G>>) -> bool {
        if self.brackets.is_empty() {
            return true;
        }
        let alive = self.gpu.check_alive();
        let mut detector = FeedDetector::new(alive.ok().and_then(|()| self.gpu.clock()));
        while let Some(oldest) = self.brackets.front() {
            if finished.len() >= HANDED_BACK {
                return false;
            }
            let raw_ns = match alive.and_then(|()| oldest.gpu.elapsed(&oldest.pair)) {
                Ok(Some(ns)) => Ok(ns),
                Ok(None) => break,
                Err(fault) => Err(fault),
            };
            let Some(mut bracket) = self.brackets.pop_front() else { break };
            let mut behind = self.brackets.iter().skip(QUEUE - 1).take(QUEUE);
            let behind = behind.find(|last| bracket.is_before(QUEUE, last));
            let behind_ns = behind.map(|last| last.stopped_ns);
            let outcome = raw_ns.map(|ns| bracket.sample(ns, &mut detector, behind_ns));
            if outcome.is_err() {
                // The pool gives up the bracket. In a context that is gone, this does nothing.
                bracket.gpu.discard(&[bracket.pair.start, bracket.pair.stop]);
            }
            if timeline::is_on()
                && let Ok(Ok(sample)) = outcome
            {
                bracket.set_moments(sample, &mut detector);
            }
            finished.push(FinishedBracket { bracket, outcome });
        }
        true
    }
}
