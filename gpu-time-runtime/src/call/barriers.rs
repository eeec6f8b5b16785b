//! Calls timed between two barriers: the wall time from one idle state of the stream to the next.
//!
//! Requested by `clock = "sync"`, the only clock that makes a call wait for the GPU.

use std::time::Duration;

use crate::base::lock::locked;
use crate::call::stream::Life;
use crate::gpu::{Fault, Gpu, Preparation};
use crate::record::stream_state::{NestingMark, StreamKey, StreamState};
use crate::record::{series_counters::SeriesRef, threads::StreamCall, timeline};
use crate::site::cost;
use crate::types::sample::{CacheState, Lost, Sample, SampleFlags};
use crate::types::workload::Workload;

/// The barriers around a call.
///
/// Invariant: until this is closed or abandoned, a bracket is open in the stream's state and a call
/// is in flight in its series.
pub(crate) struct Barriers {
    stream_state: &'static StreamState,
    opened: NestingMark,
    series: SeriesRef,
    /// The host time after the first barrier.
    began_ns: u64,
}

impl Barriers {
    /// Begins the call after the first barrier. On failure, counts the call as lost and returns `None`.
    #[cold]
    pub fn open(call: &StreamCall, life: Life<'_>) -> Option<Barriers> {
        let StreamCall { site, thread, context, stream, .. } = *call;
        let obstacle = call.obstacle(life);
        let stream_key = StreamKey::new(stream, thread);
        let stream_state = locked(&thread.recorder).stream_state(context, stream_key);
        let (prepare, cache) = match obstacle {
            None => call.preparation(site.settings(), stream_state.is_busy(), None),
            Some(_) => (Preparation::default(), CacheState::AsFound),
        };
        let mut recorder = locked(&thread.recorder);
        let series = recorder.series.begin(site, call.function(cache));
        let (stream_state, opened) = recorder.open_stream(context, stream_key);
        drop(recorder);
        let mut barriers = Barriers { stream_state, opened, series, began_ns: 0 };
        let began = match obstacle {
            Some(reason) => Err(reason),
            None => begin(call, prepare).map_err(Lost::from),
        };
        match began {
            Ok(began_ns) => {
                barriers.began_ns = began_ns;
                Some(barriers)
            }
            Err(reason) => {
                barriers.abandon(call, reason);
                timeline::end(call.call_id);
                None
            }
        }
    }

    /// Waits for the stream again and records the time since the first barrier.
    #[cold]
    pub fn close(&self, call: &StreamCall, life: Life<'_>) {
        let StreamCall { thread, context, stream, tracked, work, weight, .. } = *call;
        let ended_ns = match call.obstacle(life) {
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
        locked(&thread.recorder).deliver(self.series, outcome, work);
    }

    /// Counts the call as lost, without waiting.
    #[cold]
    pub fn abandon(&self, call: &StreamCall, reason: Lost) {
        self.stream_state.close();
        let mut recorder = locked(&call.thread.recorder);
        recorder.deliver(self.series, Err(reason), Workload::UNKNOWN);
    }
}

/// Flushes the cache if requested, waits for the stream and returns the host time.
fn begin(call: &StreamCall, prepare: Preparation) -> Result<u64, Fault> {
    let StreamCall { site, context, stream, .. } = *call;
    if let Some(cold) = prepare.cold {
        context.flush(stream, cold)?;
        if cost::is_on() {
            site.cost.count_preparation(context.flush_cost_ns(cold));
        }
    }
    context.synchronize(stream)?;
    Ok(context.now_ns())
}
