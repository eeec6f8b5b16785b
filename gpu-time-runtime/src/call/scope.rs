//! The scope that an annotated function holds while it runs.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;

use crate::base::{fork, inside, switches};
use crate::nvtx::Range;
use crate::record::stack::StackPlace;
use crate::record::timeline::{self, CallId};
use crate::site::callsite::CallSite;
use crate::site::cost::{CostGuard, CostTimer};
use crate::types::sample::Lost;

/// One call of an annotated function, which ends when this is dropped. Borrows nothing.
///
/// A single `Option`, so that an untimed call has only one state to check when it ends.
#[must_use]
pub struct Scope<C: TimedCall>(Option<Active<C>>);

/// The decision whether to time a call.
///
/// One flat enum rather than a `Result` with a reason as its error: the payloads of the two would
/// overlap, and the compiler would pass the value through memory rather than in registers.
pub(crate) enum Decision<T> {
    Timed(T),
    /// Not timed, and nothing observes it.
    Plain,
    /// Not timed, but CUPTI records or is about to record, or an NVTX tool listens.
    Observed,
}

impl<T> Decision<T> {
    /// Returns the decision not to time the call.
    #[inline]
    pub fn untimed() -> Self {
        if switches::is_observed() { Decision::Observed } else { Decision::Plain }
    }

    /// Returns the call's scope, which `begin` creates if the call is timed.
    #[inline(always)]
    pub fn scope<C: TimedCall>(
        self,
        site: &'static CallSite,
        begin: impl FnOnce(T) -> Scope<C>,
    ) -> Scope<C> {
        match self {
            Decision::Timed(value) => begin(value),
            Decision::Plain => Scope::plain(),
            Decision::Observed => Scope::observed(site),
        }
    }
}

/// A call that is timed, has an NVTX range, or may be around others that are.
struct Active<C> {
    site: &'static CallSite,
    /// `None` if the call is not timed.
    call: Option<C>,
    /// The NVTX range. It begins after a body's start event and ends before the stop event, so that tools
    /// do not show flushes and holds in it.
    range: Option<Range>,
    /// The function is suspended at a visible `.await`.
    is_suspended: AtomicBool,
    was_panicking: bool,
    place: StackPlace,
    cost: CostTimer,
}

/// A way of timing calls.
pub trait TimedCall {
    /// Ends the call and returns its number in the trace. `lost` is the reason if there is no
    /// sample; `timing` meters the host time spent here.
    #[doc(hidden)]
    fn end(&mut self, lost: Option<Lost>, timing: &mut CostGuard<'_>) -> CallId;

    /// Marks that an async function stops running on this thread: it begins to wait for a future, or a
    /// poll of that future has ended. A call may end after this without a [`resume`](Self::resume).
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
    pub(crate) fn plain() -> Self {
        Scope(None)
    }

    /// Creates the scope for an untimed call while CUPTI records or is about to record, or an NVTX
    /// tool listens.
    #[cold]
    fn observed(site: &'static CallSite) -> Self {
        // A call by a signal handler or an allocator may have interrupted the tool.
        let range = inside::try_enter().and_then(|_inside| Range::begin(site));
        Scope(Some(Active::new(site, None, range, CostTimer::off())))
    }

    /// Creates the scope for a call that was to be timed but is not, such as a warm-up call.
    pub(crate) fn untimed(site: &'static CallSite) -> Self {
        inside::outside(|| Decision::<Self>::untimed().scope(site, |scope| scope))
    }

    /// Creates the scope for a call that was not chosen to be opened.
    pub(crate) fn passed_over(site: &'static CallSite) -> Self {
        Scope(Some(Active::new(site, None, Range::begin(site), CostTimer::off())))
    }

    /// Creates the scope for a call, which is timed if `call` is `Some`.
    #[inline(always)]
    pub(crate) fn of(site: &'static CallSite, call: Option<C>, cost: CostTimer) -> Self {
        let Some(call) = call else { return Scope::untimed(site) };
        Scope(Some(Active::new(site, Some(call), Range::begin(site), cost)))
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
        if let Some(active) = &self.0
            && !active.is_suspended.swap(true, Relaxed)
        {
            active.pause();
        }
    }

    fn resume(&self) {
        // Not every `suspend` is followed by an `awaited`: a macro may leave an `.await` by `break` or
        // `continue`.
        if let Some(active) = &self.0
            && active.is_suspended.swap(false, Relaxed)
        {
            active.resume();
        }
    }
}

/// Suspends the call while the function awaits this future, and resumes it during each poll.
#[inline]
pub fn awaiting<T: IntoFuture, C: TimedCall>(
    (future,): (T,),
    scope: &Scope<C>,
) -> AwaitedFuture<'_, T::IntoFuture, C> {
    let future = future.into_future();
    scope.suspend();
    AwaitedFuture { future, scope }
}

pin_project! {
    /// A future that a suspended function waits for. The function's call continues while it is polled.
    #[must_use = "futures do nothing unless polled"]
    pub struct AwaitedFuture<'a, F, C: TimedCall> {
        #[pin]
        future: F,
        scope: &'a Scope<C>,
    }
}

impl<F: Future, C: TimedCall> Future for AwaitedFuture<'_, F, C> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _polled = Polled::begin(this.scope);
        this.future.poll(context)
    }
}

/// A suspended call that continues until this is dropped, also by a panic.
struct Polled<'a, C: TimedCall>(&'a Scope<C>);

impl<'a, C: TimedCall> Polled<'a, C> {
    fn begin(scope: &'a Scope<C>) -> Self {
        if let Some(active) = &scope.0 {
            active.resume();
        }
        Polled(scope)
    }
}

impl<C: TimedCall> Drop for Polled<'_, C> {
    fn drop(&mut self) {
        if let Some(active) = &self.0.0 {
            active.pause();
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
    fn new(
        site: &'static CallSite,
        call: Option<C>,
        range: Option<Range>,
        cost: CostTimer,
    ) -> Self {
        let (is_suspended, was_panicking) = (AtomicBool::new(false), thread::panicking());
        let place = StackPlace::default();
        place.enter(site);
        Active { site, call, range, is_suspended, was_panicking, place, cost }
    }

    fn pause(&self) {
        self.place.suspend();
        if let Some(range) = &self.range {
            range.pop();
        }
        if let Some(call) = &self.call {
            call.pause();
        }
    }

    fn resume(&self) {
        self.place.enter(self.site);
        if let Some(call) = &self.call {
            call.resume();
        }
        if let Some(range) = &self.range {
            range.push();
        }
    }

    #[inline(never)]
    fn end(&mut self) {
        let is_suspended = *self.is_suspended.get_mut();
        if !is_suspended {
            self.place.leave();
        }
        if fork::is_forked() {
            // The call belongs to the parent, and another thread may have held a lock at the fork.
            return;
        }
        let _inside = inside::enter();
        if let Some(range) = &self.range
            && !is_suspended
        {
            range.pop();
        }
        let Some(call) = &mut self.call else { return };
        let mut timing = self.cost.start();
        let lost = if thread::panicking() && !self.was_panicking {
            // Checked first, because the panic may come from the awaited future.
            Some(Lost::Failed)
        } else if is_suspended {
            Some(Lost::Cancelled)
        } else {
            None
        };
        timeline::end(call.end(lost, &mut timing));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;
    use crate::gpu::fake::site;
    use crate::record::stack;
    use crate::types::attribute::Spec;

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
            let spec = Spec { is_async: true, ..Spec::named("test::f") };
            let site = Box::leak(Box::new(CallSite::new(spec)));
            Scope::of(site, Some(self.clone()), CostTimer::sample(&site.cost))
        }
    }

    impl TimedCall for Logged {
        fn end(&mut self, lost: Option<Lost>, _: &mut CostGuard<'_>) -> CallId {
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
    fn call_is_paused_after_a_poll_that_panics() {
        let log = Logged::default();
        let scope = log.scope();
        let mut future =
            pin!(awaiting((poll_fn(|_| -> Poll<()> { panic!("on purpose") }),), &scope));
        assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err());
        assert_eq!(log.take(), ["pause", "resume", "pause"]);
    }

    #[test]
    fn awaited_future_has_only_a_reference_more() {
        let (log, future) = (Logged::default(), std::future::ready([0_u64; 64]));
        let (alone, scope) = (size_of_val(&future), log.scope());
        assert_eq!(size_of_val(&awaiting((future,), &scope)), alone + size_of::<usize>());
    }

    /// Another thread may continue it.
    #[test]
    fn call_is_on_the_stack_while_it_is_polled() {
        let mut future = pin!(async {
            let active = Active::new(site(), None, None, CostTimer::off());
            let scope = Scope::<Logged>(Some(active));
            let mut seen = vec![stack::innermost_site().is_some()];
            let work = poll_fn(|_| {
                seen.push(stack::innermost_site().is_some());
                if seen.len() > 2 { Poll::Ready(()) } else { Poll::Pending }
            });
            awaited(((), awaiting((work,), &scope).await), &scope);
            seen.push(stack::innermost_site().is_some());
            seen
        });
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(stack::path(), None);
        assert_eq!(poll(future.as_mut()), Poll::Ready(vec![true; 4]));
        assert_eq!(stack::path(), None);
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
