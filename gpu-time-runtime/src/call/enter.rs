//! From a call of an annotated function to its scope, or to a count where it is not timed.

use std::time::Instant;

use crate::base::lock::locked;
use crate::base::switches;
use crate::call::barriers::Barriers;
use crate::call::brackets::CallState;
use crate::call::decide::{Drawn, Gate};
use crate::call::scope::{Kind, Scope};
use crate::call::stream::WithWorkload;
use crate::call::stream::{StreamGuard, Target};
use crate::call::{decide, first};
use crate::cuda;
use crate::cuda::Context;
use crate::lifecycle::exit;
use crate::record::call::StreamCall;
use crate::record::threads;
use crate::record::timeline;
use crate::site::callsite::CallSite;
use crate::site::cost::{Stint, Tab};
use crate::site::counters::Outcome;
use crate::types::attribute::{Clock, ScopeKind};
use crate::types::device::DeviceId;
use crate::types::handles::Stream;
use crate::types::key::{KeyText, SeriesKey};
use crate::types::sample::CacheState;
use crate::types::workload::{Details, Workload};

// A call that is not timed is decided about where it is made: it costs less than the call of a function that
// would, and saves no registers for what timed calls do.

/// Begins a call on the stream that `target` gives. It is asked only for calls that are switched on
/// and not filtered out.
#[inline(always)]
pub fn enter<K: StreamGuard>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
) -> Scope<K> {
    begin(site, target, || Details::NONE, |keep, _| keep)
}

/// The same for a call of which more is said: `details` is asked only for calls that are timed.
#[inline(always)]
pub fn enter_detailed<K: StreamGuard>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
) -> Scope<WithWorkload<K>> {
    begin(site, target, details, |keep, workload| WithWorkload { keep, workload })
}

/// `carry` makes what the call takes along of the stream's keep and the work.
#[inline(always)]
fn begin<K: StreamGuard, L: StreamGuard>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let drawn = if is_wanted(site) {
        if site.spec.graph {
            Drawn::Later
        } else {
            match decide::draw(site) {
                Some(weight) => Drawn::Weight(weight),
                None => return Scope::none(),
            }
        }
    } else {
        // A function that was filtered out before it was captured has none.
        let may_have_nodes = site.is_on() == Some(true) && !site.has_no_nodes();
        if !site.spec.graph || !(may_have_nodes || site.has_nodes()) {
            threads::count(site, Outcome::Skipped);
            return Scope::none();
        }
        Drawn::Off
    };
    begin_on_stream(site, drawn, target, details, carry)
}

#[inline(never)]
fn begin_on_stream<K: StreamGuard, L: StreamGuard>(
    site: &'static CallSite,
    drawn: Drawn,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let (is_off, has_graphs) = (drawn == Drawn::Off, site.spec.graph);
    if is_off && (switches::is_closed() || cuda::is_recording()) {
        threads::count(site, Outcome::Skipped);
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
            let weight = gate.weight().or_else(|| decide::draw(site));
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
            threads::count(site, Outcome::Timed);
            let (thread, call_id) = (threads::current(), timeline::begin(site));
            let place =
                || StreamCall { site, thread, context, stream, tracked, call_id, key, weight };
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
fn enter_off<K: StreamGuard, L: StreamGuard>(
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
    let Ok(context) = first::find(stream, context) else { return Scope::none() };
    std::mem::forget(skipped);
    threads::count(site, Outcome::Timed);
    let (thread, call_id, key) = (threads::current(), timeline::begin(site), SeriesKey::NONE);
    let place = StreamCall { site, thread, context, stream, tracked, call_id, key, weight: 1.0 };
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
        threads::count(self.0, Outcome::Skipped);
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
        threads::count(site, Outcome::Skipped);
        return Scope::none();
    }
    let Some(weight) = decide::draw(site) else { return Scope::none() };
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
        Some(on) => on && switches::is_on(),
        None => first::introduce(site) && switches::is_on(),
    }
}

fn enter_on_host(
    site: &'static CallSite,
    weight: f32,
    details: impl FnOnce() -> Details,
) -> Option<Kind> {
    exit::arm();
    if site.lease_warmup(DeviceId::Host, site.warmup(), 1) == 1 {
        threads::count(site, Outcome::Warmup);
        return None;
    }
    let Details { key, workload } = detailed(site, details);
    let key = find_key(site, key);
    threads::count(site, Outcome::Timed);
    let thread = threads::current();
    let entry =
        locked(&thread.recorder).series.begin(site, None, DeviceId::Host, CacheState::AsFound, key);
    let call_id = timeline::begin(site);
    Some(Kind::Host { thread, entry, weight, workload, call_id, started: Instant::now() })
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
        None => first::meet(site, stream, handle)?,
    };
    if !site.is_plain() && first::is_warmup(site, context, stream, handle != 0) {
        threads::count(site, Outcome::Warmup);
        return None;
    }
    Some(context)
}
