//! Warm-up: the first calls on each device and with each key, which are not timed.

use crate::cuda::Context;
use crate::record::threads;
use crate::site::callsite::CallSite;
use crate::site::counters::{CallCounters, Lease};
use crate::types::{device::DeviceId, key::SeriesKey};

/// The maximum number of warm-up calls that a thread leases at a time.
const MAX_LEASE: u32 = 256;

/// Takes a warm-up call for the context's device, or for the host if there is no context. Returns
/// `false` if none is left. If many are left, the thread leases more, which its next calls in the
/// context use up without further checks. The second value of `on` is the handle by which those calls
/// identify the context, or 0 if they cannot use a lease.
#[inline(never)]
pub(super) fn take(
    site: &'static CallSite,
    on: Option<(&'static Context, usize)>,
    key: SeriesKey,
) -> bool {
    let total = site.warmup();
    let device = on.map_or(DeviceId::Host, |(context, _)| context.device_id());
    let counters = threads::counters(site);
    if total == 0 || counters.is_some_and(|counters| counters.is_warm(device, key, total)) {
        return false;
    }
    // A lease applies to calls in one context, before their key is known. The program must not be
    // able to destroy that context, because the next one at its address may be on another device.
    let context = on.and_then(|(context, handle)| context.is_retained().then_some(handle));
    let can_lease = !site.is_sampled() && !site.spec.graph;
    let context = context.filter(|handle| *handle != 0 && can_lease && counters.is_some());
    // The rest of a lease for another context is given back, so that it can be used in this one.
    if let Some(Lease { device, calls }) = counters.and_then(CallCounters::take_warmup) {
        site.warmups.give_back(device, SeriesKey::NONE, calls);
    }
    let taken =
        site.warmups.take(device, key, total, if context.is_some() { MAX_LEASE } else { 1 });
    match (counters, context, taken) {
        (Some(counters), _, 0) => counters.set_warm(device, key, total),
        (Some(counters), Some(context), 2..) => {
            counters.skip_warmup(Lease { device, calls: taken - 1 }, context, site.rate.epoch());
        }
        _ => {}
    }
    taken > 0
}
