//! The scope that an annotated function holds while it runs.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use crate::base::clock;
use crate::base::fork;
use crate::base::lock::locked;
use crate::call::barriers::Barriers;
use crate::call::brackets::{Bracket, CallState, Open};
use crate::call::stream::StreamGuard;
use crate::record::call::StreamCall;
use crate::record::series_counters::SeriesRef;
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::{self, CallId};
use crate::site::cost::{Stint, Tab};
use crate::types::attribute::ScopeKind;
use crate::types::sample::{Lost, Sample};
use crate::types::workload::Workload;

/// One call of an annotated function.
///
/// Borrows nothing. Dropping it ends the call.
#[must_use]
pub struct Scope<K: StreamGuard>(Option<Active<K>>);

struct Active<K> {
    kind: Kind,
    /// What says whether the stream is still there; none where there is no stream.
    keep: Option<K>,
    /// Between a visible `.await` and its completion.
    is_suspended: AtomicBool,
    was_panicking: bool,
    /// Where the host's time for this call is counted.
    tab: Tab,
}

pub(crate) enum Kind {
    /// With a bracket around the body, unless that was lost at its start or the scope is `launches`.
    Stream { place: StreamCall, state: CallState, body: Option<Bracket> },
    /// Between two barriers on the stream.
    Sync(Barriers),
    Host {
        thread: &'static ThreadRecorder,
        entry: SeriesRef,
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

impl<K: StreamGuard> Scope<K> {
    /// That of a call that is not timed. No constant: all of one would be copied.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Scope(None)
    }

    /// That of one that is.
    #[inline]
    pub(crate) fn active(kind: Kind, keep: Option<K>, tab: Tab) -> Self {
        let (is_suspended, was_panicking) = (AtomicBool::new(false), thread::panicking());
        Scope(Some(Active { kind, keep, is_suspended, was_panicking, tab }))
    }

    /// The same on a stream, made where it stays: to copy what has just been written takes longer than to write
    /// it, because a store is not passed on to a load that is wider.
    #[inline(always)]
    pub(crate) fn on_stream(
        place: impl FnOnce() -> StreamCall,
        body: Option<Bracket>,
        keep: K,
        tab: Tab,
    ) -> Self {
        Scope(Some(Active {
            kind: Kind::Stream { place: place(), state: CallState::default(), body },
            keep: Some(keep),
            is_suspended: AtomicBool::new(false),
            was_panicking: thread::panicking(),
            tab,
        }))
    }

    /// Begins the launch with this index in [`Spec::launches`](crate::types::attribute::Spec::launches).
    #[inline]
    pub fn start(&self, launch: u32) -> Token {
        Token(match &self.0 {
            _ if fork::is_forked() => None,
            Some(Active { kind: Kind::Stream { place, state, body: None }, keep, tab, .. }) => {
                let _stint = Stint::of(tab);
                let held = keep.as_ref().map(StreamGuard::hold);
                let is_alive = !matches!(held, Some(None));
                let workload = keep.as_ref().map_or(Workload::UNKNOWN, StreamGuard::workload);
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
pub fn awaiting<T, K: StreamGuard>((future,): (T,), scope: &Scope<K>) -> T {
    scope.set_suspended(true);
    future
}

/// Marks that the function goes on, with what the future came to.
#[inline]
pub fn awaited<T, K: StreamGuard>(((), output): ((), T), scope: &Scope<K>) -> T {
    scope.set_suspended(false);
    output
}

/// Ends a launch, unless `failed` says that there was none.
#[inline]
pub fn stop<R, K: StreamGuard>(
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
pub fn stop_statement<K: StreamGuard>(mut token: Token, scope: &Scope<K>) {
    if let Some(open) = token.0.take() {
        scope.close(open, false);
    }
}

impl<K: StreamGuard> Scope<K> {
    fn close(&self, open: Open, has_failed: bool) {
        if fork::is_forked() {
            return;
        }
        let Some(Active { kind: Kind::Stream { place, .. }, keep, tab, .. }) = &self.0 else {
            return;
        };
        let _stint = Stint::of(tab);
        if has_failed {
            return open.abandon(Lost::Failed);
        }
        // A handle outlives the stream if the body drops the last owner: hold it for the record.
        let held = keep.as_ref().map(StreamGuard::hold);
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
        if let Some(open) = self.0.take()
            && !fork::is_forked()
        {
            open.abandon(Lost::Failed);
        }
    }
}

impl<K: StreamGuard> Drop for Scope<K> {
    #[inline]
    fn drop(&mut self) {
        if let Some(active) = &mut self.0 {
            active.leave();
        }
    }
}

impl<K: StreamGuard> Active<K> {
    fn leave(&mut self) {
        if fork::is_forked() {
            // It is the parent's call, and another thread may have held a lock when the process was forked.
            return;
        }
        let mut stint = Stint::of(&self.tab);
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
                    let held = self.keep.as_ref().map(StreamGuard::hold);
                    place.close(bracket, !matches!(held, Some(None)));
                }
            },
            Kind::Sync(barriers) => match lost {
                Some(reason) => barriers.abandon(reason),
                None => {
                    stint.waits();
                    let held = self.keep.as_ref().map(StreamGuard::hold);
                    let workload =
                        self.keep.as_ref().map_or(Workload::UNKNOWN, StreamGuard::workload);
                    barriers.close(!matches!(held, Some(None)), workload);
                }
            },
            Kind::Host { thread, entry, started, weight, workload, .. } => {
                let ended = Instant::now();
                let took = ended.saturating_duration_since(*started);
                let outcome = match lost {
                    Some(reason) => Err(reason),
                    None => {
                        let sample = Sample::by_host(took, clock::since_start_ns(ended));
                        Ok(sample.weighted(*weight))
                    }
                };
                locked(&thread.recorder).deliver(*entry, outcome, *workload);
            }
        }
        if timeline::is_on() {
            timeline::end(self.kind.call_id());
        }
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
