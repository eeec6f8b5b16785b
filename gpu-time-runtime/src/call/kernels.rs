//! Calls that need no stream, because they are timed by the kernels that they enqueue.

use std::convert::Infallible;

use crate::call::decide::{self, Opening};
use crate::call::host::HostCall;
use crate::call::scope::TimedCall;
use crate::call::source::{Details, Work};
use crate::call::ticket::with_counters;
use crate::call::timed_by::TimedBy;
use crate::call::{opened, opened::OpenedCall};
use crate::cuda;
use crate::record::opened::{CallSeries, OpenedAs, OpenedFunction, is_inside};
use crate::record::{threads, timeline, timeline::CallId};
use crate::site::cost::CostGuard;
use crate::types::sample::{CacheState, Lost};

/// A call timed by its kernels, or by the host clock if they cannot be recorded.
pub type KernelsCall<W> = TimedBy<Infallible, W>;

impl<W> KernelsCall<W> {
    /// Converts the call to a type whose calls may also be on a stream.
    #[inline]
    pub(super) fn widened<S>(self) -> TimedBy<S, W> {
        match self {
            TimedBy::Stream(never) => match never {},
            TimedBy::Host(call) => TimedBy::Host(call),
            TimedBy::Kernels(call) => TimedBy::Kernels(call),
        }
    }
}

impl TimedCall for Infallible {
    fn end(&mut self, _: Option<Lost>, _: &mut CostGuard<'_>) -> CallId {
        match *self {}
    }
}

/// Starts the call: in the thread's opened call, by opening it, or by the host clock. Returns `None` if it is a
/// warm-up call, or lost.
pub(super) fn begin<D: Details>(opening: Opening, details: D) -> Option<KernelsCall<D::Work>> {
    let (mut ticket, opened_as) = match opening {
        Opening::Opened(ticket, opened_as) => (ticket, opened_as),
        Opening::Late(site) => return opened::enter_late(site).map(TimedBy::Kernels),
        Opening::ByHost(ticket) => return HostCall::begin(ticket, details).map(TimedBy::Host),
    };
    let site = ticket.site;
    let (key, rest) = decide::series_key(site, details);
    if !site.is_plain() && decide::warms_up(&mut ticket, None, key) {
        if opened_as == OpenedAs::First {
            site.opens_next();
        }
        return None;
    }
    let drawn = decide::drawn(&ticket);
    let workload = decide::workload::<D>(site, rest).get();
    let call_id = timeline::begin(site);
    let subject = OpenedFunction {
        of: CallSeries {
            site,
            thread: threads::current(),
            launch: None,
            cache: CacheState::AsFound,
            key,
        },
        stream: None,
        weight: ticket.time(),
        opened_as,
        workload,
        call_id,
        device: cuda::only_device(),
    };
    let call = opened::enter(subject, is_inside());
    if let Some(weight) = call.as_ref().and_then(OpenedCall::weight) {
        with_counters(site, |counters| counters.weigh_opened(drawn, weight));
    }
    call.map(TimedBy::Kernels)
}
