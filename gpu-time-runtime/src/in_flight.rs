//! Brackets that were enqueued and that the GPU has not been seen to pass.

use std::collections::VecDeque;
use std::ptr;

use crate::bracket::Bracket;
use crate::gpu::{Fault, Gpu, Stream};

/// So many brackets come together before anyone looks whether the first have finished.
pub(crate) const BATCH: usize = 32;

/// The pending brackets of one lane, in a queue for each stream.
///
/// Invariants: a queue is in the order of its stops, as far as one thread recorded them; looking
/// never waits. The number of brackets is bounded by what a lane's pools may make, and an empty
/// queue serves the next stream that has none.
pub(crate) struct InFlight<G: Gpu> {
    queues: Vec<Queue<G>>,
    /// Brackets added since anyone looked.
    unseen: usize,
}

struct Queue<G: Gpu> {
    gpu: &'static G,
    stream: Stream,
    pending: VecDeque<Box<Bracket<G>>>,
}

impl<G: Gpu> Default for InFlight<G> {
    fn default() -> Self {
        InFlight { queues: Vec::new(), unseen: 0 }
    }
}

impl<G: Gpu> InFlight<G> {
    /// Adds a bracket whose stop has just been recorded. Answers whether a batch has come together
    /// since anyone looked.
    pub fn push(&mut self, bracket: Box<Bracket<G>>) -> bool {
        let (gpu, stream) = (bracket.gpu, bracket.subject.stream);
        let at = self
            .queues
            .iter()
            .position(|q| q.stream == stream && ptr::eq(q.gpu, gpu))
            .or_else(|| self.queues.iter().position(|q| q.pending.is_empty()));
        match at.and_then(|at| self.queues.get_mut(at)) {
            Some(queue) => {
                (queue.gpu, queue.stream) = (gpu, stream);
                queue.pending.push_back(bracket);
            }
            None => {
                let mut pending = VecDeque::with_capacity(BATCH * 4);
                pending.push_back(bracket);
                self.queues.push(Queue { gpu, stream, pending });
            }
        }
        self.unseen += 1;
        self.unseen >= BATCH
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|q| q.pending.is_empty())
    }

    /// Hands every bracket that the GPU has passed to `settle`, with its time or its fault: on each
    /// stream from the oldest to the first that is not finished.
    pub fn drain(&mut self, mut settle: impl FnMut(Box<Bracket<G>>, Result<f64, Fault>)) {
        self.unseen = 0;
        for queue in self.queues.iter_mut().filter(|queue| !queue.pending.is_empty()) {
            let alive = queue.gpu.check_alive();
            while let Some(oldest) = queue.pending.front() {
                let elapsed = match alive.and_then(|()| oldest.gpu.elapsed(&oldest.pair)) {
                    Ok(Some(ns)) => Ok(ns),
                    Ok(None) => break,
                    Err(fault) => Err(fault),
                };
                let Some(bracket) = queue.pending.pop_front() else { break };
                settle(bracket, elapsed);
            }
        }
    }
}
