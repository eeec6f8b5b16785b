//! The scope that an annotated function holds while it runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::base::{fork, inside};
use crate::record::opened;
use crate::record::timeline::{self, CallId};
use crate::site::cost::{CostTimer, Timing};
use crate::types::sample::Lost;

/// One call of an annotated function. Borrows nothing; ends the call on drop.
#[must_use]
pub struct Scope<C: TimedCall>(Option<Active<C>>);

/// A timed call.
struct Active<C> {
    call: C,
    /// The function is suspended at a visible `.await`.
    is_suspended: AtomicBool,
    was_panicking: bool,
    /// The call keeps calls inside it from being the outermost on the thread.
    nests: bool,
    cost: CostTimer,
}

/// A way of timing calls.
pub trait TimedCall {
    /// Ends the call and returns its number in the trace. `lost` is the reason if there is no
    /// sample; `timing` meters the host time spent here.
    #[doc(hidden)]
    fn end(&mut self, lost: Option<Lost>, timing: &mut Timing<'_>) -> CallId;

    /// Notes that the function may be suspended from now on, or has resumed.
    #[doc(hidden)]
    fn suspend(&self, _is_suspended: bool) {}
}

impl<C: TimedCall> Scope<C> {
    /// Creates the scope for an untimed call. This is a function because a `const` would be copied
    /// in full.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Scope(None)
    }

    /// Creates the scope for a call, which is timed if it is `Some`. `nests`: while it runs, no call on its thread
    /// can be opened.
    #[inline(always)]
    pub(crate) fn of(call: Option<C>, nests: bool, cost: CostTimer) -> Self {
        let Some(call) = call else { return Scope(None) };
        if nests {
            opened::nest();
        }
        Scope(Some(Active {
            call,
            nests,
            is_suspended: AtomicBool::new(false),
            was_panicking: thread::panicking(),
            cost,
        }))
    }

    /// Returns the call and its cost timer, if the call is timed.
    #[inline(always)]
    pub(crate) fn timed(&self) -> Option<(&C, &CostTimer)> {
        self.0.as_ref().map(|active| (&active.call, &active.cost))
    }

    /// Marks that the function may be suspended at any time from now on.
    #[inline]
    pub fn suspend(&self) {
        self.set_suspended(true);
    }

    fn set_suspended(&self, is_suspended: bool) {
        if let Some(active) = &self.0 {
            active.is_suspended.store(is_suspended, Relaxed);
            active.call.suspend(is_suspended);
        }
    }
}

/// Marks that the function is about to wait for this future.
#[inline]
pub fn awaiting<T, C: TimedCall>((future,): (T,), scope: &Scope<C>) -> T {
    scope.set_suspended(true);
    future
}

/// Marks that the function has resumed, and passes on the future's output.
#[inline]
pub fn awaited<T, C: TimedCall>(((), output): ((), T), scope: &Scope<C>) -> T {
    scope.set_suspended(false);
    output
}

impl<C: TimedCall> Drop for Scope<C> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(active) = &mut self.0 {
            active.end();
        }
    }
}

impl<C: TimedCall> Active<C> {
    #[inline(never)]
    fn end(&mut self) {
        if fork::is_forked() {
            // The call belongs to the parent, and another thread may have held a lock at the fork.
            return;
        }
        let _inside = inside::enter();
        let mut timing = self.cost.start();
        if self.nests {
            opened::unnest();
        }
        let lost = if thread::panicking() && !self.was_panicking {
            // Checked first, because the panic may come from the awaited future.
            Some(Lost::Failed)
        } else if *self.is_suspended.get_mut() {
            Some(Lost::Cancelled)
        } else {
            None
        };
        timeline::end(self.call.end(lost, &mut timing));
    }
}
