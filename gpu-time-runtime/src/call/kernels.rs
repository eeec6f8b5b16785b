//! Calls timed by the kernels that they enqueue, which need no stream.

use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;

use crate::base::room;
use crate::call::decide::{self, Ticket};
use crate::call::host::{HostCall, StreamOrHost};
use crate::call::scope::TimedCall;
use crate::call::source::{Details, Work};
use crate::call::{first, opened};
use crate::cupti;
use crate::record::opened::{CallSeries, Subject, is_inside, is_outermost};
use crate::record::{threads, timeline, timeline::CallId};
use crate::site::{cost::Timing, counters::Outcome};
use crate::types::sample::{CacheState, Lost};

/// A call timed by its kernels, or by the host clock if they cannot be recorded.
pub type KernelsCall<W> = StreamOrHost<Infallible, W>;

impl TimedCall for Infallible {
    fn end(&mut self, _: Option<Lost>, _: &mut Timing<'_>) -> CallId {
        match *self {}
    }
}

/// Starts the call: as a function of the thread's opened call, or by opening it. Returns `None` if
/// it is a warm-up call, or not chosen.
pub(super) fn begin<D: Details>(mut ticket: Ticket, details: D) -> Option<KernelsCall<D::Work>> {
    let site = ticket.site;
    if !is_inside() {
        if site.kernels_share() == 0.0 || !room::with_room(cupti::is_available) {
            return HostCall::begin(ticket, details).map(StreamOrHost::Host);
        }
        if !is_outermost() {
            site.inside_events.fetch_add(1, Relaxed);
        }
        if !opened::is_chosen(site) {
            ticket.count_as(Outcome::Unsampled);
            return None;
        }
    }
    let (key, rest) = decide::series_key(site, details);
    if !site.is_plain() && decide::warms_up(&mut ticket, None, key) {
        return None;
    }
    let workload = decide::workload::<D>(site, rest).get();
    let call_id = timeline::begin(site);
    let subject = Subject {
        of: CallSeries {
            site,
            thread: threads::current(),
            launch: None,
            cache: CacheState::AsFound,
            key,
        },
        stream: None,
        weight: ticket.time(),
        workload,
        call_id,
    };
    opened::enter(subject, first::only_device(), is_inside()).map(StreamOrHost::Opened)
}
