//! A call between two barriers: wall time from when its stream was idle to when it is again.
//!
//! This is the one measurement that waits for the GPU, because the user asked for just that.

use std::time::Duration;

use crate::base::lock::locked;
use crate::call::brackets::obstacle;
use crate::cuda::Context;
use crate::gpu::Preparation;
use crate::gpu::{Fault, Gpu};
use crate::record::call::StreamCall;
use crate::record::series_counters::SeriesRef;
use crate::record::stream_state::{Mark, StreamKey, StreamState};
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::{self, CallId};
use crate::site::callsite::CallSite;
use crate::site::cost;
use crate::types::handles::Stream;
use crate::types::sample::{CacheState, Lost, Sample, SampleFlags};
use crate::types::workload::Workload;

/// A call whose stream was idle when it began.
///
/// Invariant: it is open on its track, and in flight in its row, until it is closed or abandoned.
pub(crate) struct Barriers {
    site: &'static CallSite,
    thread: &'static ThreadRecorder,
    context: &'static Context,
    stream: Stream,
    stream_state: &'static StreamState,
    opened: Mark,
    entry: SeriesRef,
    /// cudarc puts waits and records of its own around what is launched.
    tracked: bool,
    /// The call as a trace knows it.
    pub call_id: CallId,
    /// How many calls this one stands for.
    weight: f32,
    /// The host's time after the first barrier.
    began_ns: u64,
}

impl Barriers {
    /// Flushes if that is to be, waits for the stream and takes the time; or counts the call as lost.
    /// `is_alive` says whether the stream still is.
    #[cold]
    pub fn open(place: &StreamCall, is_alive: bool) -> Option<Barriers> {
        let StreamCall { site, thread, context, stream, tracked, call_id, key, weight } = *place;
        let obstacle = if is_alive { obstacle(context, stream) } else { Some(Lost::Stream) };
        let stream_key = StreamKey::new(stream, thread);
        let stream_state = locked(&thread.recorder).stream_state(context, stream_key);
        let (prepare, cache) = match obstacle {
            None => place.preparation(site.settings(), stream_state.is_busy(), None),
            Some(_) => (Preparation::default(), CacheState::AsFound),
        };
        let entry =
            locked(&thread.recorder).series.begin(site, None, context.device_id(), cache, key);
        let (stream_state, opened) = locked(&thread.recorder).open_stream(context, stream_key);
        let barriers = Barriers {
            site,
            thread,
            context,
            stream,
            stream_state,
            opened,
            entry,
            tracked,
            call_id,
            weight,
            began_ns: 0,
        };
        let began = match obstacle {
            Some(reason) => Err(reason),
            None => barriers.begin(prepare).map_err(Lost::from),
        };
        match began {
            Ok(began_ns) => Some(Barriers { began_ns, ..barriers }),
            Err(reason) => {
                barriers.abandon(reason);
                timeline::end(call_id);
                None
            }
        }
    }

    fn begin(&self, prepare: Preparation) -> Result<u64, Fault> {
        if let Some(cold) = prepare.cold {
            self.context.flush(self.stream, cold)?;
            if cost::is_on() {
                self.site.meter.spend(self.context.flush_cost_ns(cold));
            }
        }
        self.context.synchronize(self.stream)?;
        Ok(self.context.now_ns())
    }

    /// Waits for the stream once more and takes the time. `is_alive` says whether the stream still is.
    #[cold]
    pub fn close(&self, is_alive: bool, workload: Workload) {
        let Barriers { context, stream, stream_state, .. } = *self;
        let obstacle = if is_alive { obstacle(context, stream) } else { Some(Lost::Stream) };
        let ended_ns = match obstacle {
            Some(reason) => Err(reason),
            None => context.synchronize(stream).map_err(Lost::from),
        }
        .map(|()| context.now_ns());
        let nested = stream_state.close() != self.opened;
        let outcome = ended_ns.map(|ended_ns| {
            let took = Duration::from_nanos(ended_ns.saturating_sub(self.began_ns));
            let sample = Sample::by_host(took, ended_ns).weighted(self.weight);
            sample.flagged(SampleFlags { nested, tracked: self.tracked, ..sample.flags })
        });
        locked(&self.thread.recorder).deliver(self.entry, outcome, workload);
    }

    /// Gives the call up without waiting.
    #[cold]
    pub fn abandon(&self, reason: Lost) {
        self.stream_state.close();
        locked(&self.thread.recorder).deliver(self.entry, Err(reason), Workload::UNKNOWN);
    }
}
