//! What one lane has in hand: idle and pending brackets, sums, rows.

use std::ptr;

use crate::gpu::Gpu;
use crate::record::bracket::{Bracket, Subject};
use crate::record::call_sums::{CallStatuses, CallSums, FinishedSum, SumId};
use crate::record::ledger::Ledger;
use crate::record::pending::{Drain, FinishedBracket, Pending};
use crate::record::pool::Pools;
use crate::record::series_counters::{SeriesRef, SeriesTable};
use crate::record::stream_state::{self, Mark, StreamKey, StreamState};
use crate::record::timeline;
use crate::site::callsite::CallSite;
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;
use crate::types::sample::{CacheState, Lost, Sample};
use crate::types::workload::Workload;

/// Streams whose states a thread remembers, so that it need not take the lock of all states.
const RECENT_STREAMS: usize = 8;

/// A stream state that the thread has used lately.
struct RecentStream<G: Gpu> {
    gpu: &'static G,
    stream_state: &'static StreamState,
}

/// A lane's brackets from their beginning to their sample.
pub(crate) struct Recorder<G: Gpu> {
    pub pools: Pools<G>,
    recent: Vec<RecentStream<G>>,
    pending: Pending<G>,
    calls: CallSums,
    pub series: SeriesTable,
}

impl<G: Gpu> Default for Recorder<G> {
    fn default() -> Self {
        Recorder {
            pools: Pools::default(),
            recent: Vec::with_capacity(RECENT_STREAMS),
            pending: Pending::default(),
            calls: CallSums::default(),
            series: SeriesTable::default(),
        }
    }
}

impl<G: Gpu> Recorder<G> {
    /// Returns the state of a stream. Another thread may reassign it until a bracket is open on it.
    #[inline]
    pub fn stream_state(&mut self, gpu: &'static G, key: StreamKey) -> &'static StreamState {
        let is_it =
            |recent: &&RecentStream<G>| recent.stream_state.is_of(key) && ptr::eq(recent.gpu, gpu);
        match self.recent.iter().find(is_it) {
            Some(recent) => recent.stream_state,
            None => self.find_stream_state(gpu, key),
        }
    }

    #[cold]
    fn find_stream_state(&mut self, gpu: &'static G, key: StreamKey) -> &'static StreamState {
        let stream_state = stream_state::state_of(gpu, key);
        if self.recent.iter().any(|recent| ptr::eq(recent.stream_state, stream_state)) {
            // It was reassigned and is the stream's again.
            return stream_state;
        }
        if self.recent.len() == RECENT_STREAMS {
            // Prefer one without an open bracket: `has_open` must know of this thread's brackets.
            let idle = self.recent.iter().position(|recent| !recent.stream_state.is_busy());
            self.recent.remove(idle.unwrap_or(0));
        }
        self.recent.push(RecentStream { gpu, stream_state });
        stream_state
    }

    /// Opens a bracket on a stream, and returns the stream's state with the bracket's mark.
    pub fn open_stream(&mut self, gpu: &'static G, key: StreamKey) -> (&'static StreamState, Mark) {
        loop {
            let stream_state = self.stream_state(gpu, key);
            if let Some(opened) = stream_state.open(key) {
                return (stream_state, opened);
            }
        }
    }

    /// Returns `true` if any thread has a bracket open on a stream that this thread has used lately.
    pub fn has_open(&self) -> bool {
        self.recent.iter().any(|recent| recent.stream_state.is_busy())
    }

    /// Opens a bracket on the stream of this key, if the pool has an idle one.
    #[inline(always)]
    pub fn open(
        &mut self,
        gpu: &'static G,
        key: StreamKey,
        subject: impl FnOnce() -> Subject,
    ) -> Option<Box<Bracket<G>>> {
        let mut bracket = self.pools.take(gpu, subject)?;
        if !bracket.open(key) {
            let (stream_state, opened) = self.open_stream(gpu, key);
            bracket.open_on(stream_state, opened);
        }
        Some(bracket)
    }

    /// Takes a bracket whose stop was recorded. Returns `true` if a drain is due.
    #[inline]
    pub fn enqueue(&mut self, bracket: Box<Bracket<G>>) -> bool {
        self.pending.push(bracket)
    }

    /// Takes a bracket back that was given up, and counts it as lost.
    pub fn abandon(&mut self, bracket: Box<Bracket<G>>, reason: Lost, returns: &CallStatuses) {
        let subject = bracket.subject;
        self.pools.put(bracket);
        self.lose(subject, reason, returns);
    }

    /// Counts a bracket that was never open as lost.
    pub fn lose(&mut self, subject: Subject, reason: Lost, returns: &CallStatuses) {
        self.write(&mut Ledger::default(), subject, Err(reason), returns);
    }

    /// Hands the pending brackets to a thread that will drain them; `None` if another thread does.
    pub fn begin_drain(&mut self) -> Option<Drain<G>> {
        self.pending.begin_drain()
    }

    /// Takes back the drain and the brackets that it has left.
    pub fn end_drain(&mut self, drain: Drain<G>) {
        self.pending.end_drain(drain);
    }

    /// Records what a drain has found so far, and returns the brackets to their pools.
    pub fn settle(&mut self, drain: &mut Drain<G>, returns: &CallStatuses) {
        let mut ledger = Ledger::default();
        for FinishedBracket { bracket, outcome } in drain.finished.drain(..) {
            match outcome {
                Ok(outcome) => {
                    if let Ok(sample) = outcome
                        && timeline::is_on()
                    {
                        let row = self.series.id(bracket.subject.entry);
                        timeline::keep(row.and_then(|row| bracket.slice(row, sample)));
                    }
                    self.write(&mut ledger, bracket.subject, outcome, returns);
                    self.pools.put(bracket);
                }
                Err(fault) => {
                    self.write(&mut ledger, bracket.subject, Err(fault.into()), returns);
                    self.pools.forget(&bracket);
                }
            }
        }
        self.settle_sums(&mut ledger, returns);
    }

    /// Returns `true` if no bracket waits for the GPU and no thread drains.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Begins the sum of a call that was begun in its row, or counts it as lost where there are too many.
    pub fn open_call(
        &mut self,
        entry: SeriesRef,
        workload: Workload,
        returns: &CallStatuses,
    ) -> Option<SumId> {
        let call = self.calls.open(entry, workload).or_else(|| {
            // Where launches are lost, no bracket is enqueued that would have somebody look.
            self.settle_sums(&mut Ledger::default(), returns);
            self.calls.open(entry, workload)
        });
        if call.is_none() {
            self.deliver(entry, Err(Lost::Events), workload);
        }
        call
    }

    /// A launch of the call went where no sum has it.
    #[cold]
    pub fn lose_sum(&mut self, call: SumId, reason: Lost, returns: &CallStatuses) {
        self.calls.begin(call);
        if let Some(FinishedSum { entry, outcome, workload }) =
            self.calls.end(call, Err(reason), returns)
        {
            self.deliver(entry, outcome, workload);
        }
    }

    /// One more launch of the call was begun.
    #[inline]
    pub fn begin_launch(&mut self, call: SumId) {
        self.calls.begin(call);
    }

    /// Counts a call, and writes what became of it at once.
    pub fn count(
        &mut self,
        site: &'static CallSite,
        device: DeviceId,
        key: SeriesKey,
        outcome: Result<Sample, Lost>,
    ) {
        let entry = self.series.begin(site, None, device, CacheState::AsFound, key);
        self.deliver(entry, outcome, Workload::UNKNOWN);
    }

    /// Writes what became of a call that was begun by itself.
    pub fn deliver(&mut self, entry: SeriesRef, outcome: Result<Sample, Lost>, workload: Workload) {
        Ledger::default().write(&mut self.series, entry, outcome, workload);
    }

    #[inline]
    fn write(
        &mut self,
        ledger: &mut Ledger,
        subject: Subject,
        outcome: Result<Sample, Lost>,
        returns: &CallStatuses,
    ) {
        ledger.write(&mut self.series, subject.entry, outcome, subject.workload);
        let finished = subject.call.and_then(|call| self.calls.end(call, outcome, returns));
        if let Some(FinishedSum { entry, outcome, workload }) = finished {
            ledger.write(&mut self.series, entry, outcome, workload);
        }
    }

    /// Writes the sums of calls that have returned since their last launch was measured or lost.
    fn settle_sums(&mut self, ledger: &mut Ledger, returns: &CallStatuses) {
        while let Some(FinishedSum { entry, outcome, workload }) = self.calls.returned(returns) {
            ledger.write(&mut self.series, entry, outcome, workload);
        }
    }
}

#[cfg(test)]
mod tests;
