//! A call that counts as timed, with the values of the user's expressions.

use std::sync::atomic::Ordering::Relaxed;

use crate::base::inside;
use crate::call::source::Details;
use crate::call::{ticket::Ticket, warmup};
use crate::cuda::Context;
use crate::record::threads::{self, ThreadRecorder};
use crate::record::timeline::{self, CallId};
use crate::site::{callsite::CallSite, counters::Outcome};
use crate::types::{key::SeriesKey, workload::Workload};

/// A call that counts as timed.
///
/// Invariant: it gives a sample, or is counted as lost.
pub(crate) struct CountedCall {
    pub site: &'static CallSite,
    pub thread: &'static ThreadRecorder,
    /// The call's id in the trace.
    pub call_id: CallId,
    /// The value that divides the site into series.
    pub key: SeriesKey,
    pub work: Workload,
    /// The number of calls that this call represents.
    pub weight: f32,
}

impl CountedCall {
    /// Evaluates the call's details and counts the call. Returns `None` if it is a warm-up call, on this context or,
    /// if there is none, on the host. `handle` is the one by which the call names the context.
    #[inline(always)]
    pub fn count<D: Details>(
        ticket: &mut Ticket,
        on: Option<(&'static Context, usize)>,
        details: D,
    ) -> Option<CountedCall> {
        let site = ticket.site;
        let (text, rest) = evaluate::<D, _>(|| details.key());
        let key = text.map_or(SeriesKey::NONE, |text| site.keys.find(&text));
        // A lease applies to calls before their key is known.
        let on = on.map(|(context, handle)| (context, if D::HAS_DETAILS { 0 } else { handle }));
        if !site.is_plain() && !ticket.is_captured && warmup::take(site, on, key) {
            ticket.count_as(Outcome::Warmup);
            timeline::warmup(site);
            return None;
        }
        let work = evaluate::<D, _>(|| D::work(rest));
        if work.is_invalid() {
            site.invalid_workloads.fetch_add(1, Relaxed);
        }
        ticket.count_as(Outcome::Timed);
        let weight = ticket.weight;
        let (thread, call_id) = (threads::current(), timeline::begin(site));
        Some(CountedCall { site, thread, call_id, key, work, weight })
    }
}

/// Evaluates one of the user's expressions. Annotated functions that it calls are timed as usual.
#[inline(always)]
fn evaluate<D: Details, T>(expression: impl FnOnce() -> T) -> T {
    if D::HAS_DETAILS { inside::outside(expression) } else { expression() }
}
