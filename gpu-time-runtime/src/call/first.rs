//! The cold path of a call: the first call of a site, or the first in a context.

use std::sync::Once;
use std::time::Instant;

use crate::base::lock::locked;
use crate::base::{background, fork, inside, switches};
use crate::call::stream::Life;
use crate::control::active;
use crate::cuda::{self, Context};
use crate::cupti;
use crate::gpu::{Fault, Gpu};
use crate::health;
use crate::lifecycle::exit;
use crate::record::phase::window;
use crate::record::{graph, kernel_base, opened, stream_state, threads};
use crate::site::{callsite::CallSite, counters::Outcome, registry};
use crate::types::{device::DeviceId, handles::Stream, key::SeriesKey};

/// Registers and configures a site on its first call. Returns `true` if its calls are timed.
#[cold]
pub(super) fn first_call(site: &'static CallSite) -> bool {
    if fork::is_forked() {
        // Another thread may have held a lock at the fork.
        return false;
    }
    let Some(_inside) = inside::try_enter() else { return false };
    fork::mark_children();
    begin();
    registry::register(site);
    active::introduce(site)
}

/// Reads the configuration and arms the report at exit, once per process.
pub(super) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        background::aside(|| {
            if active::config().is_on {
                // The report is due even if nothing gets timed.
                exit::arm();
            } else {
                exit::arm_while_off();
            }
        });
    });
}

/// Finds the context for a call to be timed, or returns the outcome to count.
#[cold]
pub(super) fn context(
    site: &'static CallSite,
    stream: Stream,
    handle: usize,
    life: Life<'_>,
) -> Result<&'static Context, Outcome> {
    if cuda::why_unusable().is_some() {
        return Err(Outcome::Skipped);
    }
    match find(stream, handle, life) {
        Ok(context) => Ok(context),
        Err(fault) => {
            let mut recorder = locked(&threads::current().recorder);
            let outcome = Err(fault.into());
            recorder.count(site, DeviceId::Unknown, SeriesKey::NONE, outcome, None);
            Err(Outcome::Timed)
        }
    }
}

/// Finds the context of a stream that is never destroyed, and retains it.
#[inline]
pub(super) fn register_context(stream: Stream, handle: usize) {
    if switches::is_on()
        && cuda::recent(handle).is_none()
        && let Some(_inside) = inside::try_enter()
        && cuda::why_unusable().is_none()
    {
        // If this fails, it fails again when the call is entered, and is counted there.
        _ = find(stream, handle, Life::ALWAYS);
    }
}

/// Finds a context, and arms the exit report to run before the driver's teardown. Calibrates the
/// context's event bias if that has not been done and no other measurement is in progress.
pub(crate) fn find(
    stream: Stream,
    handle: usize,
    life: Life<'_>,
) -> Result<&'static Context, Fault> {
    let context = cuda::find(stream, handle)?;
    exit::arm_for_driver();
    graph::poll_some();
    if !context.is_calibrated() && life.obstacle().is_none() {
        health::observe(&context.device);
        // Another thread has another per-thread stream.
        let is_capturing = context.is_capturing(stream) != Ok(false);
        if !is_capturing && is_undisturbed() {
            background::aside(|| {
                context.calibrate();
                if cupti::is_in_use() {
                    measure_kernel_base(context);
                }
                health::observe_at_work(&context.device);
            });
        }
    }
    // Only now, because a phase would disturb the calibration.
    window::wake();
    Ok(context)
}

/// Measures an empty kernel with CUPTI, unless the user has set the bias or the budget has no room for records. CUPTI
/// must be available. Recording slows down all launches, so while another measurement is in progress this is left to
/// the end of the process.
fn measure_kernel_base(context: &'static Context) {
    let config = active::config();
    if config.bias.is_none() && config.may_record() && is_undisturbed() {
        kernel_base::measure(context, Instant::now());
    }
}

/// Returns `true` if no thread has an open bracket or opened call, and no phase is in progress.
fn is_undisturbed() -> bool {
    !stream_state::has_open() && !opened::are_open()
}

/// Returns the device of a context that was used before, or `None` if the context may have been destroyed. Registers
/// the context if it is new, without calibrating it.
#[cold]
pub(super) fn device(handle: usize) -> Option<DeviceId> {
    if let Some(context) = cuda::recent_current(handle) {
        return Some(context.device_id());
    }
    if cuda::why_unusable().is_some() {
        return None;
    }
    exit::arm_for_driver();
    let context = cuda::find_existing(handle)?;
    window::wake();
    health::observe(&context.device);
    Some(context.device_id())
}

/// Prepares the flushes and holds needed by the site's timed calls. This enqueues work, so it is
/// postponed while this thread has an open bracket.
#[cold]
pub(super) fn prepare(site: &'static CallSite, context: &'static Context) {
    let settings = site.settings();
    let is_needed = settings.cold.is_some_and(|cold| !context.flushes.is_ready_for(cold))
        || (settings.hold.is_some() && !context.is_ready_to_hold());
    if is_needed && !locked(&threads::current().recorder).has_open() {
        if let Some(cold) = settings.cold {
            _ = context.prepare_flush(cold);
        }
        if settings.hold.is_some() {
            context.can_hold(true);
        }
    }
}
