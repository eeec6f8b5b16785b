//! The brackets of one thread, from the pool to the series.

use std::ptr;
use std::time::Instant;

use crate::base::lock::{Mutex, locked, locked_by};
use crate::gpu::Gpu;
use crate::record::bracket::{Bracket, Subject};
use crate::record::call_sums::{CallSums, SumId};
use crate::record::pending::{CHUNK, Drain, FinishedBracket, Pending};
use crate::record::series_counters::{SeriesOutcome, SeriesRef, SeriesTable};
use crate::record::stream_state::{self, Mark, StreamKey, StreamState};
use crate::record::{pool::Pools, timeline};
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::types::sample::{CacheState, Lost, Sample};
use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

/// Streams whose states a thread remembers, so that it need not take the lock of all states.
const RECENT_STREAMS: usize = 8;

/// A stream state that the thread has used lately.
struct RecentStream<G: Gpu> {
    gpu: &'static G,
    stream_state: &'static StreamState,
}

/// Opens, collects and records the brackets of one thread.
pub(crate) struct Recorder<G: Gpu> {
    pub pools: Pools<G>,
    recent: Vec<RecentStream<G>>,
    pub pending: Pending<G>,
    pub sums: CallSums,
    /// Outcomes that are about to be recorded; empty between calls.
    outcomes: Vec<SeriesOutcome>,
    pub series: SeriesTable,
}

impl<G: Gpu> Default for Recorder<G> {
    fn default() -> Self {
        Recorder {
            pools: Pools::default(),
            recent: Vec::with_capacity(RECENT_STREAMS),
            pending: Pending::default(),
            sums: CallSums::default(),
            outcomes: Vec::new(),
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
        let stream_state = bracket.subject.stream_state;
        let (stream_state, opened) = match stream_state.open(key) {
            Some(opened) => (stream_state, opened),
            // It belongs to another stream by now.
            None => self.open_stream(gpu, key),
        };
        bracket.open_on(stream_state, opened);
        Some(bracket)
    }

    /// Returns a closed bracket to its pool, and counts it as lost.
    pub fn lose(&mut self, bracket: Box<Bracket<G>>, reason: Lost) {
        let subject = bracket.subject;
        self.pools.put(bracket);
        self.lose_unopened(subject, reason);
    }

    /// Counts a bracket that was never opened as lost.
    pub fn lose_unopened(&mut self, subject: Subject, reason: Lost) {
        self.add(&subject, Err(reason));
        self.record();
    }

    /// Records what a drain has found so far, and returns the brackets to their pools.
    pub fn settle(&mut self, drain: &mut Drain<G>) {
        // Room for a launch and a sum each: a drain does not allocate after the first.
        self.outcomes.reserve(2 * CHUNK);
        for FinishedBracket { bracket, outcome } in drain.finished.drain(..) {
            match outcome {
                Ok(outcome) => {
                    if let Ok(sample) = outcome
                        && timeline::is_on()
                    {
                        let id = self.series.id(bracket.subject.series);
                        timeline::record(id.and_then(|id| bracket.slice(id, sample)));
                    }
                    self.add(&bracket.subject, outcome);
                    self.pools.put(bracket);
                }
                Err(fault) => {
                    self.add(&bracket.subject, Err(fault.into()));
                    self.pools.remove(&bracket);
                }
            }
        }
        self.record();
    }

    /// Begins the sum of a call, which its series has counted; counts it as lost if there are too many.
    pub fn begin_call(&mut self, series: SeriesRef, workload: Workload) -> Option<SumId> {
        let call = self.sums.begin(series, workload);
        if call.is_none() {
            self.deliver(series, Err(Lost::Events), workload);
        }
        call
    }

    /// Ends the sum of a call that has returned, or was left for the reason given. Launches that are
    /// in flight are still added to it.
    pub fn end_call(&mut self, call: SumId, left: Option<Lost>) {
        self.outcomes.extend(self.sums.end(call, left));
        self.record();
    }

    /// Loses the sum of a call, because one of its launches cannot be added to it.
    #[cold]
    pub fn lose_sum(&mut self, call: SumId, reason: Lost) {
        self.sums.open_launch(call);
        let finished = self.sums.close_launch(call, Err(reason));
        self.outcomes.extend(finished);
        self.record();
    }

    /// Counts a call that made no launch, and records its outcome.
    pub fn count(
        &mut self,
        site: &'static CallSite,
        device: DeviceId,
        key: SeriesKey,
        outcome: Result<Sample, Lost>,
    ) {
        let identity = SeriesIdentity::function(device, CacheState::AsFound, key);
        let series = self.series.begin(site, identity);
        self.deliver(series, outcome, Workload::UNKNOWN);
    }

    /// Records the outcome of a call that has no bracket.
    pub fn deliver(
        &mut self,
        series: SeriesRef,
        outcome: Result<Sample, Lost>,
        workload: Workload,
    ) {
        self.series.record(&[SeriesOutcome { series, outcome, workload }]);
    }

    /// Adds the outcome of a bracket to those to record, and the sum of its call if that is complete.
    #[inline]
    fn add(&mut self, subject: &Subject, outcome: Result<Sample, Lost>) {
        let Subject { series, workload, call, .. } = *subject;
        self.outcomes.push(SeriesOutcome { series, outcome, workload });
        if let Some(call) = call {
            self.outcomes.extend(self.sums.close_launch(call, outcome));
        }
    }

    /// Records every outcome that is due.
    fn record(&mut self) {
        self.series.record(&self.outcomes);
        self.outcomes.clear();
    }
}

/// Turns every bracket of a thread that the GPU has passed into a sample or a loss, unless another
/// thread is doing so. Returns `true` if no bracket is left. Never waits for the GPU.
pub(crate) fn drain<G: Gpu>(recorder: &Mutex<Recorder<G>>) -> bool {
    let drain = locked(recorder).pending.begin_drain();
    drain.is_some_and(|drain| run(drain, recorder))
}

/// Drains like [`drain`], but gives up if the recorder stays locked until the deadline.
pub(crate) fn drain_by<G: Gpu>(recorder: &Mutex<Recorder<G>>, deadline: Instant) -> bool {
    let drain =
        locked_by(recorder, deadline).and_then(|mut recorder| recorder.pending.begin_drain());
    drain.is_some_and(|drain| run(drain, recorder))
}

/// Drains in chunks. The driver is asked without the recorder's lock: a thread may wait long for the
/// driver, and a report, which needs every thread's recorder, must not wait with it.
fn run<G: Gpu>(mut drain: Drain<G>, recorder: &Mutex<Recorder<G>>) -> bool {
    loop {
        let is_complete = drain.run();
        let mut recorder = locked(recorder);
        recorder.settle(&mut drain);
        if is_complete {
            recorder.pending.end_drain(drain);
            return recorder.pending.is_empty();
        }
    }
}

#[cfg(test)]
mod tests;
