//! The scope that an annotated function holds while it runs.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use crate::barriers::Barriers;
use crate::counts::Outcome;
use crate::cuda::Context;
use crate::gpu::{Fault, Stream};
use crate::key::{KeyText, SeriesKey};
use crate::lane::{self, Lane};
use crate::meter::{Stint, Tab};
use crate::place::{Bracket, CallState, Open, Place};
use crate::rows::EntryRef;
use crate::sample::{CacheState, Lost, Sample};
use crate::site::{CallSite, Clock, Device, ScopeKind, locked};
use crate::stream::{Keep, Target};
use crate::trace::{self, CallId};
use crate::workload::{Details, Working, Workload};
use crate::{cuda, exit, graph, process, registry};

/// Most warm-up calls that a thread takes for itself at once.
const LEASE: u32 = 64;

/// One call of an annotated function.
///
/// Borrows nothing. Dropping it ends the call.
#[must_use]
pub struct Scope<K: Keep>(Option<Active<K>>);

struct Active<K> {
    kind: Kind,
    /// What says whether the stream is still there; none where there is no stream.
    keep: Option<K>,
    /// Between a visible `.await` and its completion.
    is_suspended: AtomicBool,
    was_panicking: bool,
    /// Where the host's time for this call is counted, if it is taken.
    tab: Option<Tab>,
}

enum Kind {
    /// With a bracket around the body, unless that was lost at its start or the scope is `launches`.
    Stream { place: Place, state: CallState, body: Option<Bracket> },
    /// Between two barriers on the stream.
    Sync(Barriers),
    Host {
        lane: &'static Lane,
        entry: EntryRef,
        started: Instant,
        weight: f32,
        workload: Workload,
        call_id: CallId,
    },
}

/// A launch between its two events. Dropped without a stop, the launch is lost.
#[must_use]
pub struct Token(Option<Open>);

const _: () = {
    const fn holds_across_awaits_and_unwinding<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    holds_across_awaits_and_unwinding::<Scope<()>>();
    holds_across_awaits_and_unwinding::<Token>();
};

/// Begins a call on the stream that `target` gives. It is asked only for calls that are switched on
/// and not filtered out.
#[inline]
pub fn enter<K: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
) -> Scope<K> {
    begin(site, target, || Details::NONE, |keep, _| keep)
}

/// The same for a call of which more is said: `details` is asked only for calls that are timed.
#[inline]
pub fn enter_detailed<K: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
) -> Scope<Working<K>> {
    begin(site, target, details, |keep, workload| Working { keep, workload })
}

/// `carry` makes what the call takes along of the stream's keep and the work.
#[inline]
fn begin<K: Keep, L: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    details: impl FnOnce() -> Details,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    if !is_wanted(site) {
        // A function that was filtered out before it was captured has none.
        let may_have_nodes = site.is_on() == Some(true) && !site.has_no_nodes();
        if site.spec.graph && (may_have_nodes || site.has_nodes()) {
            return enter_off(site, target, carry);
        }
        lane::count(site, Outcome::Skipped);
        return Scope(None);
    }
    // Whether a call goes into a graph must be known first.
    let has_graphs = site.spec.graph;
    let weight = if has_graphs { None } else { lane::draw(site) };
    if !has_graphs && weight.is_none() {
        return Scope(None);
    }
    // What it takes to ask all calls of such a site is no timed call's alone.
    let (look, mut stint) =
        if has_graphs { (site.meter.look(), Stint::NONE) } else { (None, site.meter.begin()) };
    let mut gate = Gate { site, is_open: false, weight };
    match asked(site, || target(&mut gate)) {
        Target::Untimed => Scope(None),
        Target::Host => {
            let weight = weight.or_else(|| lane::draw(site));
            if has_graphs && weight.is_some() {
                stint = site.meter.begin();
            }
            drop(look);
            let kind = weight.and_then(|weight| enter_on_host(site, weight, details));
            kind.map_or(Scope(None), |kind| Scope::active(kind, None, stint.end()))
        }
        Target::Stream { stream, context, tracked, keep } => {
            if has_graphs && gate.weight.is_some() {
                stint = site.meter.begin();
            }
            drop(look);
            let weight = gate.weight.unwrap_or(1.0);
            let stream = Stream(stream);
            let Some(context) = enter_on_stream(site, stream, context) else {
                return Scope(None);
            };
            let Details { key, workload } = asked(site, details);
            let key = find_key(site, key);
            let keep = carry(keep, workload);
            lane::count(site, Outcome::Timed);
            let (lane, call_id) = (lane::current(), trace::begin(site));
            let place = Place { site, lane, context, stream, tracked, call_id, key, weight };
            let body = match site.spec.scope {
                ScopeKind::Launches => None,
                ScopeKind::Body => {
                    let held = keep.hold();
                    if site.spec.clock == Clock::Sync {
                        stint.waits();
                        let barriers = Barriers::open(&place, held.is_some());
                        return barriers.map_or(Scope(None), |barriers| {
                            Scope::active(Kind::Sync(barriers), Some(keep), stint.end())
                        });
                    }
                    place.open_body(held.is_some(), keep.workload())
                }
            };
            let kind = Kind::Stream { place, state: CallState::default(), body };
            Scope::active(kind, Some(keep), stint.end())
        }
    }
}

/// Decides about a call whose stream is known, before anything is asked that only timed calls need.
pub struct Gate {
    site: &'static CallSite,
    /// It is decided already.
    is_open: bool,
    /// How many calls this one stands for; none while that is not drawn, which goes for captured ones.
    weight: Option<f32>,
}

impl Gate {
    /// One that every call passes.
    pub(crate) fn open(site: &'static CallSite) -> Gate {
        Gate { site, is_open: true, weight: None }
    }

    /// Whether the call may be timed, on this stream of this context. Else it has been counted.
    #[inline(always)] // into the one closure that asks
    pub fn lets_pass(&mut self, stream: usize, context: usize) -> bool {
        if self.is_open {
            return true;
        }
        let (site, stream) = (self.site, Stream(stream));
        if site.spec.graph && !cuda::is_captured(stream, context) {
            self.weight = lane::draw(site);
            if self.weight.is_none() {
                return false;
            }
        }
        if let Some(slot) = lane::slot(site)
            && slot.use_lease(context)
        {
            if !goes_into_graph(site, stream, context) {
                slot.count(Outcome::Warmup);
                return false;
            }
            slot.return_lease();
        }
        true
    }
}

/// Begins a call of a site with `graph` while timing is off. A graph that is captured anew must keep
/// its shape, so such a call is timed all the same where the site's captures have nodes; and the first
/// capture, which decides that, may be this one. Whether it is one only the stream can say.
#[cold]
fn enter_off<K: Keep, L: Keep>(
    site: &'static CallSite,
    target: impl FnOnce(&mut Gate) -> Target<K>,
    carry: impl FnOnce(K, Workload) -> L,
) -> Scope<L> {
    let skipped = CountSkipped(site);
    if process::is_closed() || cuda::is_recording() {
        return Scope(None);
    }
    let Target::Stream { stream, context, tracked, keep } = target(&mut Gate::open(site)) else {
        return Scope(None);
    };
    let stream = Stream(stream);
    if !cuda::is_captured(stream, context) || !site.gets_nodes(false) {
        return Scope(None);
    }
    let Ok(context) = find(stream, context) else { return Scope(None) };
    std::mem::forget(skipped);
    lane::count(site, Outcome::Timed);
    let (lane, call_id, key) = (lane::current(), trace::begin(site), SeriesKey::NONE);
    let place = Place { site, lane, context, stream, tracked, call_id, key, weight: 1.0 };
    let keep = carry(keep, Workload::UNKNOWN);
    let kind = Kind::Stream { place, state: CallState::default(), body: None };
    Scope::active(kind, Some(keep), None)
}

/// Whether the call's launches become nodes of a graph, which is no warm-up: then the shape of the
/// graph would depend on how many calls went before.
#[inline]
fn goes_into_graph(site: &'static CallSite, stream: Stream, context: usize) -> bool {
    site.spec.graph && cuda::is_captured(stream, context) && !cuda::is_recording()
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
#[inline]
pub fn enter_host(site: &'static CallSite) -> Scope<()> {
    enter_host_detailed(site, || Details::NONE)
}

/// The same for a call of which more is said: `details` is asked only for calls that are timed.
#[inline]
pub fn enter_host_detailed(
    site: &'static CallSite,
    details: impl FnOnce() -> Details,
) -> Scope<()> {
    if !is_wanted(site) {
        lane::count(site, Outcome::Skipped);
        return Scope(None);
    }
    let Some(weight) = lane::draw(site) else { return Scope(None) };
    begin_on_host(site, weight, details)
}

#[inline(never)] // so that a call that is not sampled saves no registers for it
fn begin_on_host(
    site: &'static CallSite,
    weight: f32,
    details: impl FnOnce() -> Details,
) -> Scope<()> {
    let stint = site.meter.begin();
    let kind = enter_on_host(site, weight, details);
    kind.map_or(Scope(None), |kind| Scope::active(kind, Some(()), stint.end()))
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
    registry::register(site);
    let is_on = process::introduce(site);
    if process::config().is_on() {
        // The report is due even if nothing was timed.
        exit::arm();
    }
    is_on
}

fn enter_on_host(
    site: &'static CallSite,
    weight: f32,
    details: impl FnOnce() -> Details,
) -> Option<Kind> {
    exit::arm();
    if site.lease_warmup(Device::Host, 1) == 1 {
        lane::count(site, Outcome::Warmup);
        return None;
    }
    let Details { key, workload } = asked(site, details);
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
/// calls of the site will need. Calls that do not name their context cannot use a lease.
#[cold]
fn is_warmup(
    site: &'static CallSite,
    context: &'static Context,
    stream: Stream,
    is_named: bool,
) -> bool {
    context.prepare(site.settings());
    let own = lane::slot(site);
    if own.is_some_and(|slot| slot.is_warm(context.handle()))
        || goes_into_graph(site, stream, context.handle())
    {
        return false;
    }
    let slot = own.filter(|slot| is_named && !slot.has_lease());
    let lease = site.lease_warmup(context.place(), if slot.is_some() { LEASE } else { 1 });
    match (own, slot, lease) {
        (Some(own), _, 0) => own.set_warm(context.handle()),
        (_, Some(slot), 2..) => slot.set_lease(context.handle(), lease - 1),
        _ => {}
    }
    lease > 0
}

impl<K: Keep> Scope<K> {
    #[inline]
    fn active(kind: Kind, keep: Option<K>, tab: Option<Tab>) -> Self {
        let (is_suspended, was_panicking) = (AtomicBool::new(false), thread::panicking());
        Scope(Some(Active { kind, keep, is_suspended, was_panicking, tab }))
    }

    /// Begins the launch with this index in [`Spec::launches`](crate::site::Spec::launches).
    #[inline]
    pub fn start(&self, launch: u32) -> Token {
        Token(match &self.0 {
            Some(Active { kind: Kind::Stream { place, state, body: None }, keep, tab, .. }) => {
                let _stint = Stint::of(tab.as_ref());
                let held = keep.as_ref().map(Keep::hold);
                let is_alive = !matches!(held, Some(None));
                let workload = keep.as_ref().map_or(Workload::UNKNOWN, Keep::workload);
                place.open_launch(launch, state, is_alive, workload)
            }
            _ => None,
        })
    }

    /// Marks that the function may wait for a future from here on.
    #[inline]
    pub fn suspend(&self) {
        self.set_suspended(true);
    }

    fn set_suspended(&self, is_suspended: bool) {
        if let Some(active) = &self.0 {
            active.is_suspended.store(is_suspended, Relaxed);
        }
    }
}

/// The same, with the future that it waits for.
#[inline]
pub fn awaiting<T, K: Keep>((future,): (T,), scope: &Scope<K>) -> T {
    scope.set_suspended(true);
    future
}

/// Marks that the function goes on, with what the future came to.
#[inline]
pub fn awaited<T, K: Keep>(((), output): ((), T), scope: &Scope<K>) -> T {
    scope.set_suspended(false);
    output
}

/// Ends a launch, unless `failed` says that there was none.
#[inline]
pub fn stop<R, K: Keep>(
    (mut token, result): (Token, R),
    scope: &Scope<K>,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    if let Some(open) = token.0.take() {
        scope.close(open, failed(&result));
    }
    result
}

/// Ends a launch that has no value.
#[inline]
pub fn stop_statement<K: Keep>(mut token: Token, scope: &Scope<K>) {
    if let Some(open) = token.0.take() {
        scope.close(open, false);
    }
}

impl<K: Keep> Scope<K> {
    fn close(&self, open: Open, has_failed: bool) {
        let Some(Active { kind: Kind::Stream { place, .. }, keep, tab, .. }) = &self.0 else {
            return;
        };
        let _stint = Stint::of(tab.as_ref());
        if has_failed {
            return open.abandon(Lost::Failed);
        }
        // A handle outlives the stream if the body drops the last owner: hold it for the record.
        let held = keep.as_ref().map(Keep::hold);
        let is_alive = !matches!(held, Some(None));
        match open {
            Open::Bracket(_, bracket) => place.close(bracket, is_alive),
            Open::Node(node) => node.close(is_alive),
        }
    }
}

/// The function left the launch by unwinding, or by a `return` or `?` among its arguments.
impl Drop for Token {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.abandon(Lost::Failed);
        }
    }
}

impl<K: Keep> Drop for Scope<K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(active) = &mut self.0 {
            active.leave();
        }
    }
}

impl<K: Keep> Active<K> {
    fn leave(&mut self) {
        let mut stint = Stint::of(self.tab.as_ref());
        let lost = if thread::panicking() && !self.was_panicking {
            // The awaited future may be what panics, so this comes before the question below.
            Some(Lost::Failed)
        } else if *self.is_suspended.get_mut() {
            Some(Lost::Cancelled)
        } else {
            None
        };
        match &mut self.kind {
            Kind::Stream { place, state, .. } if place.site.spec.scope == ScopeKind::Launches => {
                place.leave(state, lost);
            }
            Kind::Stream { place, body, .. } => match (body.take(), lost) {
                (None, _) => {}
                (Some(bracket), Some(reason)) => place.abandon(bracket, reason),
                (Some(bracket), None) => {
                    let held = self.keep.as_ref().map(Keep::hold);
                    place.close(bracket, !matches!(held, Some(None)));
                }
            },
            Kind::Sync(barriers) => match lost {
                Some(reason) => barriers.abandon(reason),
                None => {
                    stint.waits();
                    let held = self.keep.as_ref().map(Keep::hold);
                    let workload = self.keep.as_ref().map_or(Workload::UNKNOWN, Keep::workload);
                    barriers.close(!matches!(held, Some(None)), workload);
                }
            },
            Kind::Host { lane, entry, started, weight, workload, .. } => {
                let ended = Instant::now();
                let took = ended.saturating_duration_since(*started);
                let outcome = match lost {
                    Some(reason) => Err(reason),
                    None => {
                        let sample = Sample::by_host(took, process::since_start_ns(ended));
                        Ok(sample.weighted(*weight))
                    }
                };
                locked(&lane.work).deliver(*entry, outcome, *workload);
            }
        }
        trace::end(self.kind.call_id());
    }
}

impl Kind {
    fn call_id(&self) -> CallId {
        match self {
            Kind::Stream { place, .. } => place.call_id,
            Kind::Sync(barriers) => barriers.call_id,
            Kind::Host { call_id, .. } => *call_id,
        }
    }
}
