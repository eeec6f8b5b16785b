//! Calls timed by the host clock, including those whose `stream` expression yields no stream.

use std::time::Instant;

use crate::base::{clock, lock::locked};
use crate::call::decide::{self, Ticket};
use crate::call::opened::OpenedCall;
use crate::call::scope::TimedCall;
use crate::call::source::{Details, Work};
use crate::record::series_counters::SeriesRef;
use crate::record::threads::{self, StreamCall, ThreadRecorder};
use crate::record::timeline::{self, CallId};
use crate::site::{cost::Timing, series_id::SeriesIdentity};
use crate::types::device::DeviceId;
use crate::types::sample::{CacheState, Lost, Sample};

/// A call between two readings of the host clock.
pub struct HostCall<W> {
    thread: &'static ThreadRecorder,
    series: SeriesRef,
    started: Instant,
    /// The number of calls that this call represents.
    weight: f32,
    work: W,
    call_id: CallId,
}

impl<W: Work> HostCall<W> {
    /// Starts the call. Returns `None` if it is a warm-up call.
    pub(crate) fn begin<D: Details<Work = W>>(
        mut ticket: Ticket,
        details: D,
    ) -> Option<HostCall<W>> {
        let site = ticket.site;
        let (key, rest) = decide::series_key(site, details);
        if !site.is_plain() && decide::warms_up(&mut ticket, None, key) {
            return None;
        }
        let work = decide::workload::<D>(site, rest);
        let weight = ticket.time();
        let thread = threads::current();
        let identity = SeriesIdentity::function(DeviceId::Host, CacheState::AsFound, key);
        let series = locked(&thread.recorder).series.begin(site, identity);
        let call_id = timeline::begin(site);
        Some(HostCall { thread, series, weight, work, call_id, started: Instant::now() })
    }
}

impl<W: Work> TimedCall for HostCall<W> {
    fn end(&mut self, lost: Option<Lost>, _: &mut Timing<'_>) -> CallId {
        let ended = Instant::now();
        let outcome = match lost {
            Some(reason) => Err(reason),
            None => {
                let took = ended.saturating_duration_since(self.started);
                let sample = Sample::by_host(took, clock::since_start_ns(ended));
                Ok(sample.weighted(self.weight))
            }
        };
        locked(&self.thread.recorder).deliver(self.series, outcome, self.work.get());
        self.call_id
    }
}

/// A call that may have a stream.
pub enum StreamOrHost<S, W> {
    /// On a stream.
    Stream(S),
    /// On the CPU, without a stream.
    Host(HostCall<W>),
    /// Recorded by CUPTI, with or without a stream.
    Opened(OpenedCall),
}

/// A way of timing a call on a stream.
pub(crate) trait StreamTimed<G, W>: TimedCall + Sized {
    /// `true` if starting and ending such a call waits for the GPU.
    const WAITS: bool = false;

    /// Starts the call. Returns `None` if it was lost.
    fn begin(call: StreamCall, guard: G, work: W) -> Option<Self>;
}

impl<S: TimedCall, W: Work> TimedCall for StreamOrHost<S, W> {
    #[inline]
    fn end(&mut self, lost: Option<Lost>, timing: &mut Timing<'_>) -> CallId {
        match self {
            StreamOrHost::Stream(call) => call.end(lost, timing),
            StreamOrHost::Host(call) => call.end(lost, timing),
            StreamOrHost::Opened(call) => call.end(lost, timing),
        }
    }

    #[inline]
    fn pause(&self) {
        match self {
            StreamOrHost::Stream(call) => call.pause(),
            StreamOrHost::Host(call) => call.pause(),
            StreamOrHost::Opened(call) => call.pause(),
        }
    }

    #[inline]
    fn resume(&self) {
        match self {
            StreamOrHost::Stream(call) => call.resume(),
            StreamOrHost::Host(call) => call.resume(),
            StreamOrHost::Opened(call) => call.resume(),
        }
    }
}
