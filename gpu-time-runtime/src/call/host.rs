//! Calls timed by the host clock, including those whose `stream` expression yields no stream.

use std::time::Instant;

use crate::base::{clock, lock::locked};
use crate::call::decide;
use crate::call::scope::TimedCall;
use crate::call::source::{Details, Work};
use crate::call::ticket::Ticket;
use crate::record::series_counters::SeriesRef;
use crate::record::threads::{self, ThreadRecorder};
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
