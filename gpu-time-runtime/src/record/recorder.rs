//! One thread's brackets, from the pool to the series.

use std::ptr;
use std::time::Instant;

use crate::base::lock::{Mutex, locked, locked_by};
use crate::gpu::Gpu;
use crate::record::bracket::{Bracket, BracketSubject};
use crate::record::call_sums::{CallSums, SumId};
use crate::record::pending::{BATCH, Drain, FinishedBracket, HANDED_BACK, Pending};
use crate::record::series_counters::{HostTime, SeriesOutcome, SeriesRef, SeriesTable};
use crate::record::stream_state::{self, NestingMark, StreamKey, StreamState};
use crate::record::{call_tree, pool::Pools, timeline};
use crate::site::{callsite::CallSite, series_id::SeriesIdentity};
use crate::stats::call_tree::place::Place;
use crate::types::sample::{CacheState, Lost, Sample};
use crate::types::{device::DeviceId, key::SeriesKey, workload::Workload};

/// The number of stream states that a thread remembers, to avoid taking the lock on all states.
const RECENT_STREAMS: usize = 8;

/// A stream state recently used by this thread.
struct RecentStream<G: Gpu> {
    gpu: &'static G,
    stream_state: &'static StreamState,
}

/// Opens, collects and records one thread's brackets.
pub(crate) struct Recorder<G: Gpu> {
    pub pools: Pools<G>,
    recent: Vec<RecentStream<G>>,
    pub pending: Pending<G>,
    pub sums: CallSums,
    /// Outcomes to be recorded. Between calls, there are fewer than a batch, and none is of a bracket. A call
    /// counts as in flight until its outcome is recorded.
    outcomes: Vec<SeriesOutcome>,
    /// Host times to be recorded. Between calls, there are fewer than a batch.
    host_times: Vec<HostTime>,
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
            host_times: Vec::new(),
            series: SeriesTable::default(),
        }
    }
}

impl<G: Gpu> Recorder<G> {
    /// Returns a stream's state. Another thread may reassign the state while no bracket is open on it.
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
            // The state was reassigned, and now belongs to this stream again.
            return stream_state;
        }
        // Only those without an open bracket are forgotten, because `has_open` must find this thread's brackets.
        while self.recent.len() >= RECENT_STREAMS
            && let Some(idle) = self.recent.iter().position(|r| !r.stream_state.is_busy())
        {
            self.recent.remove(idle);
        }
        self.recent.push(RecentStream { gpu, stream_state });
        stream_state
    }

    /// Opens a bracket on a stream. Returns the stream's state and the bracket's mark.
    pub fn open_stream(
        &mut self,
        gpu: &'static G,
        key: StreamKey,
    ) -> (&'static StreamState, NestingMark) {
        loop {
            let stream_state = self.stream_state(gpu, key);
            if let Some(opened) = stream_state.open(key) {
                return (stream_state, opened);
            }
        }
    }

    /// Returns `true` if any thread has an open bracket on a stream recently used by this thread.
    pub fn has_open(&self) -> bool {
        self.recent.iter().any(|recent| recent.stream_state.is_busy())
    }

    /// Opens a bracket on the stream with this key, if the pool has an idle one.
    #[inline(always)]
    pub fn open(
        &mut self,
        gpu: &'static G,
        key: StreamKey,
        subject: impl FnOnce() -> BracketSubject,
    ) -> Option<Box<Bracket<G>>> {
        let mut bracket = self.pools.take(gpu, subject)?;
        let stream_state = bracket.subject.stream_state;
        let (stream_state, opened) = match stream_state.open(key) {
            Some(opened) => (stream_state, opened),
            // The state now belongs to another stream.
            None => self.open_stream(gpu, key),
        };
        bracket.open_on(stream_state, opened);
        Some(bracket)
    }

    /// Returns a closed bracket to its pool and counts it as lost.
    pub fn lose(&mut self, bracket: Box<Bracket<G>>, reason: Lost) {
        let subject = bracket.subject;
        self.pools.put(bracket);
        self.lose_unopened(subject, reason);
    }

    /// Counts a bracket that was never opened as lost.
    pub fn lose_unopened(&mut self, subject: BracketSubject, reason: Lost) {
        self.add(&subject, Err(reason));
        self.record();
    }

    /// Records what is queued, and hands the pending brackets over to the draining thread. Returns `None`
    /// if another thread is already draining.
    fn begin_drain(&mut self) -> Option<Drain<G>> {
        self.record();
        self.pending.begin_drain()
    }

    /// Records the drain's results so far and returns the brackets to their pools.
    pub fn settle(&mut self, drain: &mut Drain<G>) {
        // Reserve space for a launch and a sum per bracket, behind what is queued, so that drains do not
        // allocate after the first one.
        self.outcomes.reserve((BATCH + 2 * HANDED_BACK).saturating_sub(self.outcomes.len()));
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

    /// Starts the sum for a call that its series has already counted. If the thread has too many
    /// sums, the call is counted as lost.
    pub fn begin_call(
        &mut self,
        series: SeriesRef,
        workload: Workload,
        place: Option<Place>,
    ) -> Option<SumId> {
        let call = self.sums.begin(series, workload, place);
        if call.is_none() {
            let outcome = Err(Lost::Events);
            self.outcomes.push(SeriesOutcome { series, outcome, workload, place });
            self.record();
        }
        call
    }

    /// Ends the sum for a call. `left` is the reason if the call did not return. Launches still in
    /// flight are added to the sum later.
    pub fn end_call(&mut self, call: SumId, left: Option<Lost>) {
        if let Some(outcome) = self.sums.end(call, left) {
            self.queue(outcome);
        }
    }

    /// Marks a call's sum as lost, because one of its launches cannot be added to it.
    #[cold]
    pub fn lose_sum(&mut self, call: SumId, reason: Lost) {
        self.sums.open_launch(call);
        let finished = self.sums.close_launch(call, Err(reason));
        self.outcomes.extend(finished);
        self.record();
    }

    /// Counts a call that made no launch and queues its outcome.
    pub fn count(
        &mut self,
        site: &'static CallSite,
        device: DeviceId,
        key: SeriesKey,
        outcome: Result<Sample, Lost>,
        place: Option<Place>,
    ) {
        let identity = SeriesIdentity::function(device, CacheState::AsFound, key);
        let series = self.series.begin(site, identity);
        self.queue(SeriesOutcome { series, outcome, workload: Workload::UNKNOWN, place });
    }

    /// Queues the outcome of a call that has no bracket.
    pub fn deliver(
        &mut self,
        series: SeriesRef,
        outcome: Result<Sample, Lost>,
        workload: Workload,
    ) {
        self.queue(SeriesOutcome { series, outcome, workload, place: None });
    }

    /// Queues an outcome until a batch is full or the next drain begins, so that threads that call the same
    /// function seldom wait for each other.
    fn queue(&mut self, outcome: SeriesOutcome) {
        self.outcomes.push(outcome);
        if self.outcomes.len() >= BATCH {
            self.record();
        }
    }

    /// Queues the time that a call took on the host, like its outcome.
    pub fn queue_host_time(&mut self, time: HostTime) {
        self.host_times.push(time);
        if self.host_times.len() >= BATCH {
            self.record();
        }
    }

    /// Queues a bracket's outcome for recording, and its call's sum if that is now complete.
    #[inline]
    fn add(&mut self, subject: &BracketSubject, outcome: Result<Sample, Lost>) {
        let BracketSubject { series, workload, call, place, .. } = *subject;
        let place = place.filter(|_| call.is_none());
        self.outcomes.push(SeriesOutcome { series, outcome, workload, place });
        if let Some(call) = call {
            self.outcomes.extend(self.sums.close_launch(call, outcome));
        }
    }

    /// Records everything that is queued.
    fn record(&mut self) {
        self.series.record(&self.outcomes);
        self.series.record_host_times(&self.host_times);
        let has_path = self.host_times.iter().any(|time| time.path.is_some());
        if has_path || self.outcomes.iter().any(|outcome| outcome.place.is_some()) {
            let mut tree = call_tree::tree();
            for &HostTime { series, path, ns, weight } in &self.host_times {
                if let Some((path, (site, _))) = path.zip(self.series.site(series)) {
                    tree.record_host_time(path, site.id(), ns, weight);
                }
            }
            for &SeriesOutcome { series, outcome, place, .. } in &self.outcomes {
                if let Some((place, (site, device))) = place.zip(self.series.site(series)) {
                    tree.record_timed(place, site.id(), device, outcome);
                }
            }
        }
        self.host_times.clear();
        self.outcomes.clear();
    }
}

/// Records what is queued, and converts every bracket that the GPU has passed to a sample or a loss, unless another
/// thread is already draining this recorder. Returns `true` if it has drained all brackets. Never waits for the GPU.
pub(crate) fn drain<G: Gpu>(recorder: &Mutex<Recorder<G>>) -> bool {
    let drain = locked(recorder).begin_drain();
    drain.is_some_and(|drain| run(drain, recorder))
}

/// Drains like [`drain`], but gives up if the recorder stays locked until the deadline.
pub(crate) fn drain_by<G: Gpu>(recorder: &Mutex<Recorder<G>>, deadline: Instant) -> bool {
    let drain = locked_by(recorder, deadline).and_then(|mut recorder| recorder.begin_drain());
    drain.is_some_and(|drain| run(drain, recorder))
}

/// Drains in chunks. The driver is called without holding the recorder's lock: a driver call may
/// block a thread for a long time, and a report, which needs every thread's recorder, must not be
/// blocked as well.
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
