//! Root spans, and the choice of those that open a call.
//!
//! A root is not inside another span on its thread that might have been chosen in this phase. So spans are recorded
//! inside one that is longer than phases, such as a span around the whole program.

use std::cell::Cell;
use std::sync::Once;
use std::thread::LocalKey;

use crate::base::{fork, inside, switches, thread_id};
use crate::call::first;
use crate::control::active;
use crate::record::open_frames::{self, Enclosing};
use crate::record::phase::{controller, current};
use crate::record::{call_tree, opened, threads};
use crate::stats::sampling::Sampler;
use crate::types::record_mode::Needs;
use crate::types::sampling::Sampling;

/// The largest number of spans to pass over before the next draw. Only a draw reads the configuration.
const LONGEST_GAP: u64 = 1_024;

thread_local! {
    /// The number of spans that this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The last root that the thread has entered in a phase, if it is still inside.
    static ROOT: Cell<Option<EnteredRoot>> = const { Cell::new(None) };
    // Without destructors, so that they can be used until the thread ends.
    static CREATED: Draws = Draws::default();
    static ENTERED: Draws = Draws::default();
}

#[derive(Clone, Copy)]
struct EnteredRoot {
    /// The number of spans around it.
    depth: u32,
    /// The number of the phase.
    phase: u32,
}

/// Random choices among the events of one kind on a thread.
#[derive(Default)]
struct Draws {
    /// The number of events to pass over before the next draw.
    skip: Cell<u64>,
    /// The probability of choosing an event, as of the last draw.
    share: Cell<f64>,
    sampler: Sampler,
}

/// Notes that the thread enters a span. Returns `true` if the span is a root.
#[inline]
pub(super) fn enter() -> bool {
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_add(1));
    if depth == 0 {
        ROOT.set(None);
        open_frames::enter(Enclosing::Spans);
        if open_frames::is_unseen() {
            be_seen();
        }
    }
    let phase = current::phase().map(|phase| phase.number);
    if is_inside_root(phase) {
        return false;
    }
    if let Some(phase) = phase {
        ROOT.set(Some(EnteredRoot { depth, phase }));
    }
    true
}

/// Gives the thread a recorder, with which other threads see that it is inside of a span, also in a phase that begins
/// later.
#[cold]
fn be_seen() {
    if !switches::is_on() || fork::is_forked() || thread_id::is_ending() {
        return;
    }
    if let Some(_inside) = inside::try_enter() {
        threads::current();
    }
}

/// Notes that the thread leaves a span.
#[inline]
pub(super) fn exit() {
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_sub(1));
    if depth <= 1 {
        open_frames::leave(Enclosing::Spans);
    }
    if ROOT.get().is_some_and(|root| root.depth + 1 >= depth) {
        ROOT.set(None);
    }
}

/// Returns `true` if the thread is inside a root that it has entered in this phase.
#[inline]
fn is_inside_root(phase: Option<u32>) -> bool {
    ROOT.get().is_some_and(|root| phase.is_none_or(|phase| root.phase == phase))
}

/// Decides whether a new span without an explicit parent opens a call. Returns the probability of choosing it, or
/// `None` if it is not a root or not chosen.
#[inline]
pub(super) fn choose_new(rate: Sampling) -> Option<f64> {
    let phase = current::phase().map(|phase| phase.number);
    if is_inside_root(phase) { None } else { choose(&CREATED, rate) }
}

/// Does the same for an entry of a root. The choice applies only to kept spans.
#[inline]
pub(super) fn choose_entered(rate: Sampling) -> Option<f64> {
    choose(&ENTERED, rate)
}

#[inline]
fn choose(draws: &'static LocalKey<Draws>, rate: Sampling) -> Option<f64> {
    // Inside another timed call, this event cannot open a call and is not counted.
    if opened::is_inside() || !is_recorded() {
        return None;
    }
    draws.with(|draws| match draws.skip.get().checked_sub(1) {
        Some(skip) => {
            draws.skip.set(skip);
            None
        }
        None => draws.draw(rate),
    })
}

/// Returns `true` in a phase.
#[inline]
fn is_recorded() -> bool {
    static ONCE: Once = Once::new();
    if !ONCE.is_completed() {
        begin(&ONCE);
    }
    if controller::is_suspended() {
        controller::want_in_run(Needs::RECORDS);
    }
    current::phase().is_some()
}

/// Reads the configuration before the first span, unless that is inside the runtime.
#[cold]
fn begin(once: &Once) {
    // In a forked child, another thread may have held a lock at the fork.
    if fork::is_forked() {
        return;
    }
    let Some(_inside) = inside::try_enter() else { return };
    fork::mark_children();
    once.call_once(|| {
        first::begin();
        active::note_spans();
        controller::want();
    });
}

impl Draws {
    #[cold]
    fn draw(&self, rate: Sampling) -> Option<f64> {
        self.share.set(0.0);
        // In a forked child, another thread may have held a lock at the fork.
        if !switches::is_on() || fork::is_forked() {
            return None;
        }
        let _inside = inside::try_enter()?;
        let sampling = Sampling::of_share(if active::config().is_on { rate.get() } else { 0.0 })?;
        if sampling.get() > 0.0 && sampling.get() < 1.0 {
            call_tree::note_sampled_spans();
        }
        self.share.set(sampling.get());
        let draw = self.sampler.draw(sampling, LONGEST_GAP);
        self.skip.set(draw.skips);
        let weight = draw.weight?;
        // Without CUPTI, the call is counted as lost when the span is entered.
        call_tree::note_chosen_span();
        Some(f64::from(weight).recip())
    }
}
