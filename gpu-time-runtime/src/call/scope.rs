//! The scope that an annotated function holds while it runs.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::base::fork;
use crate::call::body::BodyCall;
use crate::call::launches::{LaunchesCall, Token};
use crate::record::timeline::{self, CallId};
use crate::site::cost::{CostTimer, Timing};
use crate::types::sample::Lost;

/// One call of an annotated function. Borrows nothing; dropping it ends the call.
#[must_use]
pub struct Scope<C: TimedCall>(Option<Active<C>>);

/// A call that is timed.
struct Active<C> {
    call: C,
    /// Between a visible `.await` and its completion.
    is_suspended: AtomicBool,
    was_panicking: bool,
    cost: CostTimer,
}

/// One way of timing a call.
pub trait TimedCall {
    /// Ends the call; `lost` is why it gives no sample, if so.
    #[doc(hidden)]
    fn end(&mut self, lost: Option<Lost>, timing: &mut CallTiming<'_>);

    /// The call's number in the trace.
    #[doc(hidden)]
    fn id(&self) -> TraceId;
}

/// The host time of the end of a call.
pub struct CallTiming<'a>(pub(crate) Timing<'a>);

/// The number of a call in the trace.
pub struct TraceId(pub(crate) CallId);

const _: () = {
    const fn holds_across_awaits_and_unwinding<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    holds_across_awaits_and_unwinding::<Scope<LaunchesCall<(), ()>>>();
    holds_across_awaits_and_unwinding::<Scope<BodyCall<(), ()>>>();
    holds_across_awaits_and_unwinding::<Token>();
};

impl<C: TimedCall> Scope<C> {
    /// The scope of a call that is not timed. A function rather than a `const`, which would be copied
    /// in full.
    #[inline(always)]
    pub(crate) fn none() -> Self {
        Scope(None)
    }

    /// The scope of a call, if it is timed.
    #[inline(always)]
    pub(crate) fn of(call: Option<C>, cost: CostTimer) -> Self {
        match call {
            None => Scope(None),
            Some(call) => Scope(Some(Active {
                call,
                is_suspended: AtomicBool::new(false),
                was_panicking: thread::panicking(),
                cost,
            })),
        }
    }

    /// The call and its cost timer, if it is timed.
    #[inline(always)]
    pub(crate) fn timed(&self) -> Option<(&C, &CostTimer)> {
        self.0.as_ref().map(|active| (&active.call, &active.cost))
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

/// Marks that the function waits for this future.
#[inline]
pub fn awaiting<T, C: TimedCall>((future,): (T,), scope: &Scope<C>) -> T {
    scope.set_suspended(true);
    future
}

/// Marks that the function goes on, with the output of the future.
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
            // The call is the parent's, and another thread may have held a lock at the fork.
            return;
        }
        let mut timing = CallTiming(self.cost.start());
        let lost = if thread::panicking() && !self.was_panicking {
            // Before the question below: the awaited future may be what panics.
            Some(Lost::Failed)
        } else if *self.is_suspended.get_mut() {
            Some(Lost::Cancelled)
        } else {
            None
        };
        self.call.end(lost, &mut timing);
        if timeline::is_on() {
            timeline::end(self.call.id().0);
        }
    }
}
