//! From a call of an annotated function to its scope, or to a count where it is not timed.

use std::time::Instant;

use crate::barriers::Barriers;
use crate::counts::Outcome;
use crate::cuda::Context;
use crate::gate::{Drawn, Gate, goes_into_graph};
use crate::gpu::{Fault, Stream};
use crate::key::{KeyText, SeriesKey};
use crate::lane;
use crate::lock::locked;
use crate::meter::{Stint, Tab};
use crate::place::{CallState, Place};
use crate::sample::CacheState;
use crate::scope::{Kind, Scope};
use crate::site::{CallSite, Clock, Device, ScopeKind};
use crate::stream::{Keep, Target};
use crate::trace;
use crate::workload::{Details, Working, Workload};
use crate::{cuda, exit, graph, process, registry};

/// Most warm-up calls that a thread takes for itself at once.
const LEASE: u32 = 64;

// A call that is not timed is decided about where it is made: it costs less than the call of a function that
// would, and saves no registers for what timed calls do.

/// Begins a call on the stream that `target` gives. It is asked only for calls that are switched on
/// and not filtered out.
#[inline(always)]
pub fn enter<K: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
) -> Scope<K> {
    begin(site, target, || Details::NONE, |keep, _| keep)
}

/// The same for a call of which more is said: `details` is asked only for calls that are timed.
#[inline(always)]
pub fn enter_detailed<K: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
) -> Scope<Working<K>> {
    begin(site, target, details, |keep, workload| Working { keep, workload })
}

/// `carry` makes what the call takes along of the stream's keep and the work.
#[inline(always)]
fn begin<K: Keep, L: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let drawn = if is_wanted(site) {
        if site.spec.graph {
            Drawn::Later
        } else {
            match lane::draw(site) {
                Some(weight) => Drawn::Weight(weight),
                None => return Scope::none(),
            }
        }
    } else {
        // A function that was filtered out before it was captured has none.
        let may_have_nodes = site.is_on() == Some(true) && !site.has_no_nodes();
        if !site.spec.graph || !(may_have_nodes || site.has_nodes()) {
            lane::count(site, Outcome::Skipped);
            return Scope::none();
        }
        Drawn::Off
    };
    begin_on_stream(site, drawn, target, details, carry)
}

#[inline(never)]
fn begin_on_stream<K: Keep, L: Keep>(
    site: &'static CallSite,
    drawn: Drawn,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let (is_off, has_graphs) = (drawn == Drawn::Off, site.spec.graph);
    if is_off && (process::is_closed() || cuda::is_recording()) {
        lane::count(site, Outcome::Skipped);
        return Scope::none();
    }
    let mut stint = Stint::none();
    if !has_graphs {
        stint.begin(&site.meter);
    }
    let mut gate = Gate::new(site, drawn);
    let target = {
        // What it takes to ask all calls of a site with graphs is no timed call's alone.
        let _look = if has_graphs && !is_off { site.meter.look() } else { None };
        asked(site, || target(&mut gate))
    };
    if is_off {
        return enter_off(site, target, carry);
    }
    match target {
        Target::Untimed => Scope::none(),
        Target::Host => {
            let weight = gate.weight().or_else(|| lane::draw(site));
            if has_graphs && weight.is_some() {
                stint.begin(&site.meter);
            }
            let kind = weight.and_then(|weight| enter_on_host(site, weight, details));
            kind.map_or(Scope::none(), |kind| Scope::active(kind, None, stint.end()))
        }
        Target::Stream { stream, context, tracked, keep } => {
            if has_graphs && gate.weight().is_some() {
                stint.begin(&site.meter);
            }
            let weight = gate.weight().unwrap_or(1.0);
            let stream = Stream(stream);
            let Some(context) = enter_on_stream(site, stream, context) else {
                return Scope::none();
            };
            let Details { key, workload } = detailed(site, details);
            let key = find_key(site, key);
            let keep = carry(keep, workload);
            lane::count(site, Outcome::Timed);
            let (lane, call_id) = (lane::current(), trace::begin(site));
            let place = || Place { site, lane, context, stream, tracked, call_id, key, weight };
            if site.spec.clock == Clock::Sync {
                stint.waits();
                let barriers = Barriers::open(&place(), keep.hold().is_some());
                return barriers.map_or(Scope::none(), |barriers| {
                    Scope::active(Kind::Sync(barriers), Some(keep), stint.end())
                });
            }
            let body = match site.spec.scope {
                ScopeKind::Launches => None,
                ScopeKind::Body => place().open_body(keep.hold().is_some(), keep.workload()),
            };
            Scope::on_stream(place, body, keep, stint.end())
        }
    }
}

/// Begins a call of a site with `graph` while timing is off. A graph that is captured anew must keep
/// its shape, so such a call is timed all the same where the site's captures have nodes; and the first
/// capture, which decides that, may be this one. Whether it is one only the stream can say.
#[cold]
fn enter_off<K: Keep, L: Keep>(
    site: &'static CallSite,
    target: Target<K>,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let skipped = CountSkipped(site);
    let Target::Stream { stream, context, tracked, keep } = target else {
        return Scope::none();
    };
    let stream = Stream(stream);
    if !cuda::is_captured(stream, context) || !site.gets_nodes(false) {
        return Scope::none();
    }
    let Ok(context) = find(stream, context) else { return Scope::none() };
    std::mem::forget(skipped);
    lane::count(site, Outcome::Timed);
    let (lane, call_id, key) = (lane::current(), trace::begin(site), SeriesKey::NONE);
    let place = Place { site, lane, context, stream, tracked, call_id, key, weight: 1.0 };
    let keep = carry(keep, Workload::UNKNOWN);
    let kind = Kind::Stream { place, state: CallState::default(), body: None };
    Scope::active(kind, Some(keep), Tab::none())
}

/// What the user's expressions say of a call that is timed.
#[inline]
fn detailed(site: &'static CallSite, details: impl FnOnce() -> Details) -> Details {
    let details = asked(site, details);
    if details.workload.is_nonsense() {
        site.count_nonsense();
    }
    details
}

/// The value of an expression of the user's. It may panic: then the call was not timed.
#[inline]
fn asked<T>(site: &'static CallSite, expression: impl FnOnce() -> T) -> T {
    let unwinding = CountSkipped(site);
    let value = expression();
    std::mem::forget(unwinding);
    value
}

/// Counts a call as skipped.
struct CountSkipped(&'static CallSite);

impl Drop for CountSkipped {
    fn drop(&mut self) {
        lane::count(self.0, Outcome::Skipped);
    }
}

/// Begins a call that the host clock times.
#[inline(always)]
pub fn enter_host(site: &'static CallSite) -> Scope<()> {
    enter_host_detailed(site, || Details::NONE)
}

/// The same for a call of which more is said: `details` is asked only for calls that are timed.
#[inline(always)]
pub fn enter_host_detailed(
    site: &'static CallSite,
    details: impl FnOnce() -> Details,
) -> Scope<()> {
    if !is_wanted(site) {
        lane::count(site, Outcome::Skipped);
        return Scope::none();
    }
    let Some(weight) = lane::draw(site) else { return Scope::none() };
    begin_on_host(site, weight, details)
}

#[inline(never)]
fn begin_on_host(
    site: &'static CallSite,
    weight: f32,
    details: impl FnOnce() -> Details,
) -> Scope<()> {
    let mut stint = Stint::none();
    stint.begin(&site.meter);
    let kind = enter_on_host(site, weight, details);
    kind.map_or(Scope::none(), |kind| Scope::active(kind, Some(()), stint.end()))
}

/// The number of the key that a call has.
#[inline]
fn find_key(site: &'static CallSite, key: Option<KeyText>) -> SeriesKey {
    key.map_or(SeriesKey::NONE, |text| site.keys.find(&text))
}

#[inline]
fn is_wanted(site: &'static CallSite) -> bool {
    match site.is_on() {
        Some(on) => on && process::is_on(),
        None => introduce(site) && process::is_on(),
    }
}

/// The first call of a site: gives it an id, and applies the configuration.
#[cold]
fn introduce(site: &'static CallSite) -> bool {
    if exit::is_forked() {
        // Another thread may have held a lock when the process was forked.
        return false;
    }
    exit::mark_children();
    registry::register(site);
    let is_on = process::introduce(site);
    if process::config().is_on() {
        // The report is due even if nothing was timed.
        exit::arm();
    } else {
        exit::arm_while_off();
    }
    is_on
}

fn enter_on_host(
    site: &'static CallSite,
    weight: f32,
    details: impl FnOnce() -> Details,
) -> Option<Kind> {
    exit::arm();
    if site.lease_warmup(Device::Host, site.warmup(), 1) == 1 {
        lane::count(site, Outcome::Warmup);
        return None;
    }
    let Details { key, workload } = detailed(site, details);
    let key = find_key(site, key);
    lane::count(site, Outcome::Timed);
    let lane = lane::current();
    let entry = locked(&lane.work).rows.begin(site, None, Device::Host, CacheState::AsFound, key);
    let call_id = trace::begin(site);
    Some(Kind::Host { lane, entry, weight, workload, call_id, started: Instant::now() })
}

/// The context of a call that is to be timed.
#[inline(always)]
fn enter_on_stream(
    site: &'static CallSite,
    stream: Stream,
    handle: usize,
) -> Option<&'static Context> {
    let context = match cuda::recent(handle) {
        Some(context) => context,
        None => meet(site, stream, handle)?,
    };
    if !site.is_plain() && is_warmup(site, context, stream, handle != 0) {
        lane::count(site, Outcome::Warmup);
        return None;
    }
    Some(context)
}

/// Looks the context up, and counts the call where that is not to be had.
#[cold]
fn meet(site: &'static CallSite, stream: Stream, context: usize) -> Option<&'static Context> {
    if cuda::why_unusable().is_some() {
        exit::arm();
        lane::count(site, Outcome::Skipped);
        return None;
    }
    match find(stream, context) {
        Ok(context) => {
            graph::glance();
            Some(context)
        }
        Err(fault) => {
            exit::arm();
            lane::count(site, Outcome::Timed);
            let outcome = Err(fault.into());
            locked(&lane::current().work).count(site, Device::Unknown, SeriesKey::NONE, outcome);
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
    if !context.is_calibrated() && !cuda::has_open() {
        context.calibrate(stream);
    }
    Ok(context)
}

/// Takes a warm-up call, and a few more for this thread where many are left; prepares what timed
/// calls of the site will need. Calls that do not name their context cannot use a lease; and those of a
/// context that the program may destroy must not, because another device's may have its address next.
#[cold]
fn is_warmup(
    site: &'static CallSite,
    context: &'static Context,
    stream: Stream,
    is_named: bool,
) -> bool {
    context.prepare(site.settings(), || !locked(&lane::current().work).has_open());
    let (own, total) = (lane::slot(site), site.warmup());
    if own.is_some_and(|slot| slot.is_warm(context.ordinal(), total))
        || goes_into_graph(site, stream, context.handle())
    {
        return false;
    }
    // What is left of another context's lease on this device is this one's, too.
    if let Some((_, calls)) = own.and_then(|slot| slot.take_lease(Some(context.ordinal()))) {
        site.return_warmup(context.place(), calls);
    }
    let slot = own.filter(|slot| is_named && context.is_retained() && !slot.has_lease());
    let most = if slot.is_some() { LEASE } else { 1 };
    let lease = site.lease_warmup(context.place(), total, most);
    match (own, slot, lease) {
        (Some(own), _, 0) => own.set_warm(context.ordinal(), total),
        (_, Some(slot), 2..) => slot.set_lease(context.handle(), context.ordinal(), lease - 1),
        _ => {}
    }
    lease > 0
}
