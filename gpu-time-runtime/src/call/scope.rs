//! The scope that an annotated function holds while it runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

#[cfg(feature = "kernels")]
use crate::base::polled::{Around, Polled};
use crate::base::{fork, inside};
use crate::record::opened;
use crate::record::timeline::{self, CallId};
use crate::record::window::notes::{self, Mark};
use crate::site::cost::{CostTimer, Timing};
use crate::types::sample::Lost;

/// One call of an annotated function. Borrows nothing; ends the call on drop.
///
/// Has two states, because every untimed call checks at its end which one it is.
#[must_use]
pub struct Scope<C: TimedCall>(Option<Active<C>>);

/// A call that is not timed.
pub(crate) struct Untimed(Option<Mark>);

impl Untimed {
    /// A call in a time without windows.
    pub const PLAIN: Untimed = Untimed(None);

    /// Marks the call if a window is open or close.
    #[inline]
    pub fn now(is_async: bool) -> Untimed {
        if notes::is_on() { Untimed::while_on(is_async) } else { Untimed::PLAIN }
    }

    /// Marks the call for a window. A suspended function may end on another thread, so it has no mark.
    #[cold]
    pub fn while_on(is_async: bool) -> Untimed {
        Untimed(if is_async { None } else { notes::mark() })
    }
}

/// The state of the thread that a call has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// While the call runs, no call on its thread can be opened.
    Nested,
    Marked(Mark),
}

/// A call that is timed, or that is marked for a window.
struct Active<C> {
    /// `None` if it is marked only.
    call: Option<C>,
    /// The function is suspended at a visible `.await`.
    is_suspended: AtomicBool,
    was_panicking: bool,
    within: Within,
    cost: CostTimer,
}

/// A way of timing calls.
pub trait TimedCall {
    /// Ends the call and returns its number in the trace. `lost` is the reason if there is no
    /// sample; `timing` meters the host time spent here.
    #[doc(hidden)]
    fn end(&mut self, lost: Option<Lost>, timing: &mut Timing<'_>) -> CallId;

    /// Marks that an async function leaves this thread: it waits, or the future that it waits for has
    /// been polled. A call may end after this without a [`resume`](Self::resume).
    #[doc(hidden)]
    #[inline(always)]
    fn pause(&self) {}

    /// Marks that an async function, or a future that it waits for, runs on this thread until the next
    /// [`pause`](Self::pause). A call begins as resumed.
    #[doc(hidden)]
    #[inline(always)]
    fn resume(&self) {}
}

impl<C: TimedCall> Scope<C> {
    /// Creates the scope for an untimed call.
    #[inline(always)]
    pub(crate) fn untimed(call: Untimed) -> Self {
        match call.0 {
            None => Scope(None),
            Some(mark) => Scope::marked(mark),
        }
    }

    #[cold]
    fn marked(mark: Mark) -> Self {
        Scope(Some(Active::new(None, Within::Marked(mark), CostTimer::off())))
    }

    /// Creates the scope for a call, which is timed if it is `Some`. `nests`: while it runs, no
    /// call on its thread can be opened.
    #[inline(always)]
    pub(crate) fn of(call: Option<C>, is_async: bool, nests: bool, cost: CostTimer) -> Self {
        let Some(call) = call else { return Scope::untimed(Untimed::now(is_async)) };
        let within = if nests {
            opened::nest();
            Within::Nested
        } else {
            Untimed::now(is_async).0.map_or(Within::Nothing, Within::Marked)
        };
        Scope(Some(Active::new(Some(call), within, cost)))
    }

    /// Returns the call and its cost timer, if the call is timed.
    #[inline(always)]
    pub(crate) fn timed(&self) -> Option<(&C, &CostTimer)> {
        let active = self.0.as_ref()?;
        Some((active.call.as_ref()?, &active.cost))
    }

    /// Marks that the function may be suspended at any time from now on.
    #[inline]
    pub fn suspend(&self) {
        if let Some(Active { call: Some(call), is_suspended, .. }) = &self.0
            && !is_suspended.swap(true, Relaxed)
        {
            call.pause();
        }
    }

    fn resume(&self) {
        // A loop that a macro leaves by `break` or `continue` suspends twice.
        if let Some(Active { call: Some(call), is_suspended, .. }) = &self.0
            && is_suspended.swap(false, Relaxed)
        {
            call.resume();
        }
    }
}

/// Marks that the function is about to wait for this future.
#[cfg(not(feature = "kernels"))]
#[inline]
pub fn awaiting<T, C: TimedCall>((future,): (T,), scope: &Scope<C>) -> T {
    scope.suspend();
    future
}

/// Marks that the function is about to wait for this future, and runs while it is polled.
#[cfg(feature = "kernels")]
#[inline]
pub fn awaiting<T: IntoFuture, C: TimedCall>(
    (future,): (T,),
    scope: &Scope<C>,
) -> Polled<T::IntoFuture, &Scope<C>> {
    let future = future.into_future();
    scope.suspend();
    Polled::new(future, scope)
}

/// Continues the call of a suspended function while the future that it waits for is polled.
#[cfg(feature = "kernels")]
impl<C: TimedCall> Around for &Scope<C> {
    #[inline]
    fn before(&self) {
        if let Some((call, _)) = self.timed() {
            call.resume();
        }
    }

    #[inline]
    fn after(&self) {
        if let Some((call, _)) = self.timed() {
            call.pause();
        }
    }
}

/// Marks that the function has resumed, and passes on the future's output.
#[inline]
pub fn awaited<T, C: TimedCall>(((), output): ((), T), scope: &Scope<C>) -> T {
    scope.resume();
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
    #[inline(always)]
    fn new(call: Option<C>, within: Within, cost: CostTimer) -> Self {
        let (is_suspended, was_panicking) = (AtomicBool::new(false), thread::panicking());
        Active { call, is_suspended, was_panicking, within, cost }
    }

    #[inline(never)]
    fn end(&mut self) {
        match self.within {
            Within::Nothing => {}
            Within::Nested => opened::unnest(),
            Within::Marked(mark) => notes::unmark(mark),
        }
        let Some(call) = &mut self.call else { return };
        if fork::is_forked() {
            // The call belongs to the parent, and another thread may have held a lock at the fork.
            return;
        }
        let _inside = inside::enter();
        let mut timing = self.cost.start();
        let lost = if thread::panicking() && !self.was_panicking {
            // Checked first, because the panic may come from the awaited future.
            Some(Lost::Failed)
        } else if *self.is_suspended.get_mut() {
            Some(Lost::Cancelled)
        } else {
            None
        };
        timeline::end(call.end(lost, &mut timing));
    }
}

#[cfg(all(test, feature = "kernels"))]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::site::cost::CostMeter;

    /// A call that logs what happens to it.
    #[derive(Default, Clone)]
    struct Logged(Rc<RefCell<Vec<&'static str>>>);

    impl Logged {
        fn log(&self, entry: &'static str) {
            self.0.borrow_mut().push(entry);
        }

        fn take(&self) -> Vec<&'static str> {
            self.0.take()
        }

        fn scope(&self) -> Scope<Logged> {
            let meter = Box::leak(Box::new(CostMeter::new()));
            Scope::of(Some(self.clone()), true, false, CostTimer::sample(meter))
        }
    }

    impl TimedCall for Logged {
        fn end(&mut self, lost: Option<Lost>, _: &mut Timing<'_>) -> CallId {
            self.log(match lost {
                None => "end",
                Some(Lost::Cancelled) => "cancelled",
                Some(_) => "failed",
            });
            CallId::default()
        }

        fn pause(&self) {
            self.log("pause");
        }

        fn resume(&self) {
            self.log("resume");
        }
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Waits as generated code does, for a future that is ready when polled for the second time.
    async fn waiting(log: Logged) {
        let scope = log.scope();
        let mut is_ready = false;
        let work = poll_fn(|_| {
            log.log("work");
            if std::mem::replace(&mut is_ready, true) { Poll::Ready(()) } else { Poll::Pending }
        });
        awaited(((), awaiting((work,), &scope).await), &scope);
        log.log("body");
    }

    #[test]
    fn call_runs_while_its_future_is_polled() {
        let log = Logged::default();
        let mut future = pin!(waiting(log.clone()));
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(log.take(), ["pause", "resume", "work", "pause"]);
        assert!(poll(future.as_mut()).is_ready());
        assert_eq!(log.take(), ["resume", "work", "pause", "resume", "body", "end"]);
    }

    #[test]
    fn cancelled_call_ends_as_paused() {
        let log = Logged::default();
        {
            let mut future = pin!(waiting(log.clone()));
            assert!(poll(future.as_mut()).is_pending());
        }
        assert_eq!(log.take(), ["pause", "resume", "work", "pause", "cancelled"]);
    }

    #[test]
    fn panic_in_the_future_leaves_the_call_paused() {
        let log = Logged::default();
        let mut future = pin!(async {
            let scope = log.scope();
            let work = poll_fn(|_| -> Poll<()> { panic!("on purpose") });
            awaited(((), awaiting((work,), &scope).await), &scope);
        });
        assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err());
        assert_eq!(log.take(), ["pause", "resume", "pause", "failed"]);
    }

    #[test]
    fn macro_left_by_break_pauses_once() {
        let log = Logged::default();
        let scope = log.scope();
        for _ in 0..2 {
            scope.suspend();
        }
        awaited(((), ()), &scope);
        awaited(((), ()), &scope);
        assert_eq!(log.take(), ["pause", "resume"]);
    }
}
