//! Whole calls that are compared, to know what timing adds.
//!
//! When sampling chooses a call and nothing has been timed so far in the outermost call around it, a draw decides
//! whether that call is timed or left alone: then nothing is timed until it ends. Its time from the draw on is read in
//! both cases. The outermost call is that of the outermost function on the stack whose calls are short and many, as
//! opposed to a `main` or a training that contains them.

use std::cell::Cell;
use std::ptr;

use crate::base::{clock, random::happens};
use crate::site::callsite::CallSite;
use crate::stats::effect::LEFT_ALONE;

/// A call that was drawn, on the stack of a thread.
#[derive(Clone, Copy)]
struct Trial {
    site: &'static CallSite,
    /// The number of calls below it on the stack.
    depth: u32,
    drawn: Drawn,
}

/// The time of a draw in nanoseconds, and its outcome in the lowest bit. 0 without a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn(pub u64);

impl Drawn {
    fn now(is_timed: bool) -> Drawn {
        Drawn(clock::now_ns() & !1 | u64::from(is_timed))
    }

    fn is_timed(self) -> bool {
        self.0 & 1 == 1
    }
}

thread_local! {
    // Without a destructor, so that calls can use it until the thread ends.
    static TRIAL: Cell<Option<Trial>> = const { Cell::new(None) };
}

/// Draws for the call of `site` with this number of calls below it. Returns `true` if it is timed.
pub(crate) fn draw(site: &'static CallSite, depth: u32) -> bool {
    let is_timed = !happens(LEFT_ALONE);
    TRIAL.set(Some(Trial { site, depth, drawn: Drawn::now(is_timed) }));
    is_timed
}

/// Returns the function, the depth and the outcome of the last draw on this thread, unless it was taken.
pub(crate) fn drawn() -> Option<(&'static CallSite, u32, bool)> {
    TRIAL.get().map(|trial| (trial.site, trial.depth, trial.drawn.is_timed()))
}

/// Takes the last draw on this thread back, because the call that asked for it is not timed.
#[inline]
pub(crate) fn forget() {
    TRIAL.set(None);
}

/// Continues a call that was drawn before it was suspended.
pub(super) fn resume(site: &'static CallSite, depth: u32, drawn: Drawn) {
    if drawn != Drawn::default() && TRIAL.get().is_none() {
        TRIAL.set(Some(Trial { site, depth, drawn }));
    }
}

/// Takes the draw of a call that leaves the stack, if there was one.
#[inline]
pub(super) fn take(site: &'static CallSite, depth: u32) -> Drawn {
    match TRIAL.get() {
        Some(trial) if trial.depth >= depth => {
            TRIAL.set(None);
            let is_its = trial.depth == depth && ptr::eq(trial.site, site);
            if is_its { trial.drawn } else { Drawn::default() }
        }
        _ => Drawn::default(),
    }
}

/// A call that has left the stack, with what is to be noted of its time.
#[derive(Default)]
pub(crate) struct EndedTimes {
    /// The time at which it began, if it is to be noted, and otherwise 0.
    pub(super) entered_ns: u64,
    pub(super) drawn: Drawn,
}

impl EndedTimes {
    #[inline]
    pub fn is_noted(&self) -> bool {
        self.entered_ns != 0
    }

    /// Notes the time of the call, which ends now. The thread must be marked as inside the runtime.
    #[cold]
    pub fn note(&self, site: &'static CallSite) {
        let now_ns = clock::now_ns();
        let since = |ns: u64| now_ns.saturating_sub(ns) as f64;
        let is_timed = self.drawn.is_timed();
        site.trials.add(|effect| {
            // Timing makes short calls much longer, and of these only chosen ones are on the stack.
            if !is_timed || !site.trials.are_short() {
                effect.add_whole(since(self.entered_ns));
            }
            if self.drawn != Drawn::default() {
                effect.add_drawn(is_timed, since(self.drawn.0 & !1));
            }
        });
    }
}
