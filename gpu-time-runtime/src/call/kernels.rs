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
use crate::record::opened::{CallSeries, Subject, is_inside, is_inside_events};
use crate::record::{threads, timeline, timeline::CallId};
use crate::site::{cost::Timing, counters::Outcome};
use crate::types::sample::{CacheState, Lost};

/// A call timed by its kernels, or by the host clock if they cannot be recorded.
pub type KernelsCall<W> = StreamOrHost<Infallible, W>;

impl<W> KernelsCall<W> {
    /// Converts the call to a type whose calls may also be on a stream.
    #[inline]
    pub(super) fn widened<S>(self) -> StreamOrHost<S, W> {
        match self {
            StreamOrHost::Stream(never) => match never {},
            StreamOrHost::Host(call) => StreamOrHost::Host(call),
            StreamOrHost::Opened(call) => StreamOrHost::Opened(call),
        }
    }
}

impl TimedCall for Infallible {
    fn end(&mut self, _: Option<Lost>, _: &mut Timing<'_>) -> CallId {
        match *self {}
    }
}

/// The outcome of beginning a call that is timed by its kernels.
pub(super) enum Begun<W> {
    Call(KernelsCall<W>),
    /// Not chosen to be opened.
    PassedOver,
    /// A warm-up call, or one that was lost.
    Untimed,
}

impl<W> From<Option<KernelsCall<W>>> for Begun<W> {
    fn from(call: Option<KernelsCall<W>>) -> Begun<W> {
        call.map_or(Begun::Untimed, Begun::Call)
    }
}

/// Starts the call: as a function of the thread's opened call, or by opening it.
pub(super) fn begin<D: Details>(mut ticket: Ticket, details: D) -> Begun<D::Work> {
    let site = ticket.site;
    let mut share = site.kernels_share();
    if !is_inside() {
        if share == 0.0 || !room::with_room(cupti::is_available) {
            return HostCall::begin(ticket, details).map(StreamOrHost::Host).into();
        }
        if is_inside_events() {
            site.inside_events.fetch_add(1, Relaxed);
        }
        let Some(chosen) = opened::chosen(site) else {
            ticket.count_as(Outcome::Unsampled);
            return Begun::PassedOver;
        };
        share = chosen;
    }
    let (key, rest) = decide::series_key(site, details);
    if !site.is_plain() && decide::warms_up(&mut ticket, None, key) {
        return Begun::Untimed;
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
        share,
        workload,
        call_id,
    };
    opened::enter(subject, first::only_device(), is_inside()).map(StreamOrHost::Opened).into()
}
