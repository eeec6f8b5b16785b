//! Calls timed between two barriers: the wall time from one idle state of the stream to the next.
//!
//! Requested by `clock = "sync"`, the only clock that makes a call wait for the GPU.

use std::time::Duration;

use crate::base::lock::locked;
use crate::call::stream::{Life, StreamGuard};
use crate::call::timed_by::{StreamTimed, TimedBy};
use crate::call::{scope::TimedCall, source::Work, stream_call::obstacle};
use crate::gpu::{Fault, Gpu, Preparation};
use crate::record::stream_state::{NestingMark, StreamKey, StreamState};
use crate::record::timeline::{self, CallId};
use crate::record::{series_counters::SeriesRef, threads::StreamCall};
use crate::site::cost::{self, CostGuard};
use crate::site::series_id::SeriesIdentity;
use crate::types::sample::{CacheState, Lost, Sample, SampleFlags};
use crate::types::workload::Workload;

/// A call timed on the host between two barriers on its stream.
pub type SyncCall<G, W> = TimedBy<SyncStream<G, W>, W>;

/// The barriers around a call, and a guard that detects whether the stream was dropped.
pub struct SyncStream<G, W> {
    barriers: Barriers,
    guard: G,
    work: W,
}

impl<G: StreamGuard, W: Work> StreamTimed<G, W> for SyncStream<G, W> {
    const WAITS: bool = true;

    fn begin(call: StreamCall, guard: G, work: W) -> Option<Self> {
        let strong = guard.upgrade();
        let barriers = Barriers::open(call, Life::of(&strong))?;
        drop(strong);
        Some(SyncStream { barriers, guard, work })
    }
}

impl<G: StreamGuard, W: Work> TimedCall for SyncStream<G, W> {
    fn end(&mut self, lost: Option<Lost>, timing: &mut CostGuard<'_>) -> CallId {
        match lost {
            Some(reason) => self.barriers.abandon(reason),
            None => {
                timing.waits();
                let strong = self.guard.upgrade();
                self.barriers.close(Life::of(&strong), self.work.get());
            }
        }
        self.barriers.call.call_id
    }
}

/// A call between two barriers.
///
/// Invariant: until this is closed or abandoned, a bracket is open in the stream's state and a call
/// is in flight in its series.
struct Barriers {
    call: StreamCall,
    stream_state: &'static StreamState,
    opened: NestingMark,
    series: SeriesRef,
    /// The host time after the first barrier.
    began_ns: u64,
}

impl Barriers {
    /// Flushes the cache if requested, waits for the stream and reads the clock. On failure, counts
    /// the call as lost and returns `None`.
    #[cold]
    fn open(call: StreamCall, life: Life<'_>) -> Option<Barriers> {
        let StreamCall { site, thread, context, stream, call_id, key, .. } = call;
        let obstacle = life.obstacle().or_else(|| obstacle(context, stream));
        let stream_key = StreamKey::new(stream, thread);
        let stream_state = locked(&thread.recorder).stream_state(context, stream_key);
        let (prepare, cache) = match obstacle {
            None => call.preparation(site.settings(), stream_state.is_busy(), None),
            Some(_) => (Preparation::default(), CacheState::AsFound),
        };
        let identity = SeriesIdentity::function(context.device_id(), cache, key);
        let mut recorder = locked(&thread.recorder);
        let series = recorder.series.begin(site, identity);
        let (stream_state, opened) = recorder.open_stream(context, stream_key);
        drop(recorder);
        let mut barriers = Barriers { call, stream_state, opened, series, began_ns: 0 };
        let began = match obstacle {
            Some(reason) => Err(reason),
            None => barriers.begin(prepare).map_err(Lost::from),
        };
        match began {
            Ok(began_ns) => {
                barriers.began_ns = began_ns;
                Some(barriers)
            }
            Err(reason) => {
                barriers.abandon(reason);
                timeline::end(call_id);
                None
            }
        }
    }

    fn begin(&self, prepare: Preparation) -> Result<u64, Fault> {
        let StreamCall { site, context, stream, .. } = self.call;
        if let Some(cold) = prepare.cold {
            context.flush(stream, cold)?;
            if cost::is_on() {
                site.cost.count_preparation(context.flush_cost_ns(cold));
            }
        }
        context.synchronize(stream)?;
        Ok(context.now_ns())
    }

    /// Waits for the stream again and records the time since the first barrier.
    #[cold]
    fn close(&self, life: Life<'_>, workload: Workload) {
        let StreamCall { thread, context, stream, tracked, weight, .. } = self.call;
        let ended_ns = match life.obstacle().or_else(|| obstacle(context, stream)) {
            Some(reason) => Err(reason),
            None => context.synchronize(stream).map_err(Lost::from),
        }
        .map(|()| context.now_ns());
        let nested = self.stream_state.close() != self.opened;
        let outcome = ended_ns.map(|ended_ns| {
            let took = Duration::from_nanos(ended_ns.saturating_sub(self.began_ns));
            let sample = Sample::by_host(took, ended_ns).weighted(weight);
            let (inner, added_ns) = if nested { (None, None) } else { (Some(0), Some(0.0)) };
            sample.around(inner, added_ns).flagged(SampleFlags { nested, tracked, ..sample.flags })
        });
        locked(&thread.recorder).deliver(self.series, outcome, workload);
    }

    /// Counts the call as lost, without waiting.
    #[cold]
    fn abandon(&self, reason: Lost) {
        self.stream_state.close();
        let mut recorder = locked(&self.call.thread.recorder);
        recorder.deliver(self.series, Err(reason), Workload::UNKNOWN);
    }
}
