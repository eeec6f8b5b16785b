//! The cold part of a call: the first one of a site, of a context, or during warm-up.

use crate::base::fork;
use crate::base::lock::locked;
use crate::call::decide::goes_into_graph;
use crate::control::active;
use crate::cuda::{self, Context};
use crate::gpu::Fault;
use crate::health;
use crate::lifecycle::exit;
use crate::record::{graph, stream_state, threads};
use crate::site::callsite::CallSite;
use crate::site::counters::Outcome;
use crate::site::registry;
use crate::types::device::DeviceId;
use crate::types::handles::Stream;
use crate::types::key::SeriesKey;

/// Most warm-up calls that a thread takes for itself at once.
const LEASE: u32 = 64;

/// The first call of a site: gives it an id, and applies the configuration.
#[cold]
pub(super) fn introduce(site: &'static CallSite) -> bool {
    if fork::is_forked() {
        // Another thread may have held a lock when the process was forked.
        return false;
    }
    fork::mark_children();
    registry::register(site);
    let is_on = active::introduce(site);
    if active::config().is_on() {
        // The report is due even if nothing was timed.
        exit::arm();
    } else {
        exit::arm_while_off();
    }
    is_on
}

/// Looks the context up, and counts the call where that is not to be had.
#[cold]
pub(super) fn meet(
    site: &'static CallSite,
    stream: Stream,
    context: usize,
) -> Option<&'static Context> {
    if cuda::why_unusable().is_some() {
        exit::arm();
        threads::count(site, Outcome::Skipped);
        return None;
    }
    match find(stream, context) {
        Ok(context) => {
            graph::poll_some();
            Some(context)
        }
        Err(fault) => {
            exit::arm();
            threads::count(site, Outcome::Timed);
            let outcome = Err(fault.into());
            locked(&threads::current().recorder).count(
                site,
                DeviceId::Unknown,
                SeriesKey::NONE,
                outcome,
            );
            None
        }
    }
}

/// Meets a context while the value that the `stream` expression came to is still there. For a stream
/// that is never destroyed, that value may be a temporary, and with it the last owner of the context.
#[inline]
pub fn met(stream: usize, context: usize) -> usize {
    let stream = Stream(stream);
    if stream.is_implicit() && context != 0 && cuda::recent(context).is_none() {
        // What fails here fails again, and is counted, when the call is entered.
        _ = cuda::why_unusable().is_none() && find(stream, context).is_ok();
    }
    context
}

/// Finds a context, sees to it that the process's end is met while its driver is there, and calibrates
/// it outside of any bracket.
pub(crate) fn find(stream: Stream, context: usize) -> Result<&'static Context, Fault> {
    let context = cuda::find(stream, context)?;
    exit::arm_for_driver();
    if !context.is_calibrated() {
        health::meet(&context.device);
        if !stream_state::has_open() {
            context.calibrate(stream);
            health::meet_at_work(&context.device);
        }
    }
    Ok(context)
}

/// Prepares flushes and holds that timed calls of the site will need, unless this thread has a bracket
/// open: preparing enqueues work of ours.
fn prepare(site: &'static CallSite, context: &'static Context) {
    let settings = site.settings();
    let is_needed = settings.cold.is_some_and(|cold| !context.is_ready_to_flush(cold))
        || (settings.hold.is_some() && !context.is_ready_to_hold());
    if is_needed && !locked(&threads::current().recorder).has_open() {
        if let Some(cold) = settings.cold {
            context.prepare_flush(cold);
        }
        if settings.hold.is_some() {
            context.can_hold(true);
        }
    }
}

/// Takes a warm-up call, and a few more for this thread where many are left; prepares what timed
/// calls of the site will need. Calls that do not name their context cannot use a lease; and those of a
/// context that the program may destroy must not, because another device's may have its address next.
#[cold]
pub(super) fn is_warmup(
    site: &'static CallSite,
    context: &'static Context,
    stream: Stream,
    is_named: bool,
) -> bool {
    prepare(site, context);
    let (own, total) = (threads::slot(site), site.warmup());
    if own.is_some_and(|slot| slot.is_warm(context.ordinal(), total))
        || goes_into_graph(site, stream, context.handle())
    {
        return false;
    }
    // What is left of another context's lease on this device is this one's, too.
    if let Some((_, calls)) = own.and_then(|slot| slot.take_lease(Some(context.ordinal()))) {
        site.return_warmup(context.device_id(), calls);
    }
    let slot = own.filter(|slot| is_named && context.is_retained() && !slot.has_lease());
    let most = if slot.is_some() { LEASE } else { 1 };
    let lease = site.lease_warmup(context.device_id(), total, most);
    match (own, slot, lease) {
        (Some(own), _, 0) => own.set_warm(context.ordinal(), total),
        (_, Some(slot), 2..) => slot.set_lease(context.handle(), context.ordinal(), lease - 1),
        _ => {}
    }
    lease > 0
}
