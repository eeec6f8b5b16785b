//! The scope that an annotated function holds while it runs.

use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;

use crate::base::{fork, inside, switches};
use crate::call::{decide::Untimed, stream::StreamGuard, timed_call::TimedCall};
use crate::nvtx::Range;
use crate::record::stack::StackPlace;
use crate::record::{timeline, trial::EndedTimes};
use crate::site::callsite::CallSite;
use crate::site::cost::CostTimer;
use crate::types::sample::Lost;

/// One call of an annotated function, which ends when this is dropped. Borrows nothing.
///
/// Invariant: only an active call is timed, so that any other one has a single state to check when it ends. Both are
/// `None` after the end. The compiler does not know that, and would call a function to drop them.
#[must_use]
pub struct Scope<G: StreamGuard> {
    active: ManuallyDrop<Option<Active>>,
    /// `None` if the call is not timed.
    pub(super) call: ManuallyDrop<Option<TimedCall<G>>>,
}

/// A call that is timed, has an NVTX range, or may be around others that are.
struct Active {
    site: &'static CallSite,
    /// The NVTX range. It begins after a body's start event and ends before the stop event, so that tools
    /// do not show flushes and holds in it.
    range: Option<Range>,
    /// The function is suspended at a visible `.await`.
    is_suspended: AtomicBool,
    was_panicking: bool,
    place: StackPlace,
    cost: CostTimer,
}

impl<G: StreamGuard> Scope<G> {
    /// Creates the scope for an untimed call that nothing observes.
    #[inline(always)]
    pub(crate) fn plain() -> Self {
        Scope { active: ManuallyDrop::new(None), call: ManuallyDrop::new(None) }
    }

    /// Creates the scope for an untimed call.
    #[inline(always)]
    pub(crate) fn untimed(site: &'static CallSite, untimed: Untimed) -> Self {
        if untimed == Untimed::Observed && switches::is_observed() {
            Scope::observed(site)
        } else {
            Scope::plain()
        }
    }

    /// Creates the scope for an untimed call while CUPTI records or is about to record, or an NVTX
    /// tool listens. Calls that are switched off or filtered out are not observed.
    #[cold]
    fn observed(site: &'static CallSite) -> Self {
        let mut scope = Scope::plain();
        if switches::is_on() && site.is_on() {
            let active = scope.active.insert(Active::new(site, CostTimer::off()));
            // A call by a signal handler or an allocator may have interrupted the tool.
            active.range = inside::try_enter().and_then(|_inside| Range::begin(site));
            active.place.enter(site);
        }
        scope
    }

    /// Prepares a call of which it is not known yet if it is timed. Returns where to put it if it is, and its cost timer.
    #[inline(always)]
    pub(crate) fn prepare(
        &mut self,
        site: &'static CallSite,
        cost: CostTimer,
    ) -> (&mut Option<TimedCall<G>>, &CostTimer) {
        (&mut self.call, &self.active.insert(Active::new(site, cost)).cost)
    }

    /// Begins the scope after that. A function without other times than those of its kernels has its place in the call
    /// tree also for calls that are not timed, such as warm-up calls.
    #[inline(always)]
    pub(crate) fn begin(&mut self, site: &'static CallSite) {
        if self.call.is_none() && !site.needs_records() && !switches::is_observed() {
            *self.active = None;
        } else if let Some(active) = &mut *self.active {
            active.range = Range::begin(site);
            active.place.enter(site);
        }
    }

    /// Returns the call and its cost timer, if the call is timed.
    #[inline(always)]
    pub(crate) fn timed(&self) -> Option<(&TimedCall<G>, &CostTimer)> {
        let active = self.active.as_ref()?;
        Some((self.call.as_ref()?, &active.cost))
    }

    /// Marks that the function may be suspended at any time from now on.
    #[inline]
    pub fn suspend(&self) {
        if let Some(active) = &*self.active
            && !active.is_suspended.swap(true, Relaxed)
        {
            self.pause();
        }
    }

    fn resume(&self) {
        // Not every `suspend` is followed by an `awaited`: a macro may leave an `.await` by `break` or
        // `continue`.
        if let Some(active) = &*self.active
            && active.is_suspended.swap(false, Relaxed)
        {
            self.go_on();
        }
    }

    /// Pauses what the call is part of.
    fn pause(&self) {
        let Some(active) = &*self.active else { return };
        active.place.suspend(active.site);
        if let Some(range) = &active.range {
            range.pop();
        }
        if let Some(call) = self.call.as_ref().filter(|_| !fork::is_forked()) {
            let _inside = inside::enter();
            call.pause();
        }
    }

    fn go_on(&self) {
        let Some(active) = &*self.active else { return };
        active.place.resume(active.site);
        if let Some(call) = self.call.as_ref().filter(|_| !fork::is_forked()) {
            let _inside = inside::enter();
            call.resume();
        }
        if let Some(range) = &active.range {
            range.push();
        }
    }

    #[inline(never)]
    fn end(&mut self) {
        if let Some(active) = &mut *self.active {
            active.end(&mut self.call);
        }
        *self.call = None;
        *self.active = None;
    }
}

/// Suspends the call while the function awaits this future, and resumes it during each poll.
#[inline]
pub fn awaiting<T: IntoFuture, G: StreamGuard>(
    (future,): (T,),
    scope: &Scope<G>,
) -> AwaitedFuture<'_, T::IntoFuture, G> {
    let future = future.into_future();
    scope.suspend();
    AwaitedFuture { future, scope }
}

pin_project! {
    /// A future that a suspended function waits for. The function's call continues while it is polled.
    #[must_use = "futures do nothing unless polled"]
    pub struct AwaitedFuture<'a, F, G: StreamGuard> {
        #[pin]
        future: F,
        scope: &'a Scope<G>,
    }
}

impl<F: Future, G: StreamGuard> Future for AwaitedFuture<'_, F, G> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _polled = Polled::begin(this.scope);
        this.future.poll(context)
    }
}

/// A suspended call that continues until this is dropped, also by a panic.
struct Polled<'a, G: StreamGuard>(&'a Scope<G>);

impl<'a, G: StreamGuard> Polled<'a, G> {
    fn begin(scope: &'a Scope<G>) -> Self {
        scope.go_on();
        Polled(scope)
    }
}

impl<G: StreamGuard> Drop for Polled<'_, G> {
    fn drop(&mut self) {
        self.0.pause();
    }
}

/// Marks that the function has resumed, and passes on the future's output.
#[inline]
pub fn awaited<T, G: StreamGuard>(((), output): ((), T), scope: &Scope<G>) -> T {
    scope.resume();
    output
}

impl<G: StreamGuard> Drop for Scope<G> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.active.is_some() {
            self.end();
        }
    }
}

impl Active {
    /// Creates the state of a call that has not begun.
    #[inline(always)]
    fn new(site: &'static CallSite, cost: CostTimer) -> Self {
        let (is_suspended, was_panicking) = (AtomicBool::new(false), thread::panicking());
        let place = StackPlace::default();
        Active { site, range: None, is_suspended, was_panicking, place, cost }
    }

    #[inline(always)]
    fn end<G: StreamGuard>(&mut self, call: &mut Option<TimedCall<G>>) {
        let is_suspended = *self.is_suspended.get_mut();
        let ended = if is_suspended { EndedTimes::default() } else { self.place.end(self.site) };
        if fork::is_forked() {
            // The call belongs to the parent, and another thread may have held a lock at the fork.
            return;
        }
        self.end_timed(call, is_suspended);
        // A call that interrupts the runtime takes no lock.
        if ended.is_noted()
            && let Some(_inside) = inside::try_enter()
        {
            ended.note(self.site);
        }
    }

    #[inline(always)]
    fn end_timed<G: StreamGuard>(&mut self, call: &mut Option<TimedCall<G>>, is_suspended: bool) {
        let _inside = inside::enter();
        if let Some(range) = &self.range
            && !is_suspended
        {
            range.pop();
        }
        let Some(call) = call else { return };
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
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::call::timed_call::logged::Log;
    use crate::record::stack;
    use crate::types::attribute::Spec;

    fn scope(log: &Log) -> Scope<()> {
        let spec = Spec { is_async: true, ..Spec::named("test::f") };
        let site = Box::leak(Box::new(CallSite::new(spec)));
        let mut scope = Scope::plain();
        *scope.prepare(site, CostTimer::sample(&site.cost, false)).0 =
            Some(TimedCall::Logged(log.clone()));
        scope.begin(site);
        scope
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Waits as generated code does, for a future that is ready when polled for the second time.
    async fn waiting(log: Log) {
        let scope = scope(&log);
        let mut is_ready = false;
        let work = poll_fn(|_| {
            log.add("work");
            if std::mem::replace(&mut is_ready, true) { Poll::Ready(()) } else { Poll::Pending }
        });
        awaited(((), awaiting((work,), &scope).await), &scope);
        log.add("body");
    }

    #[test]
    fn call_runs_while_its_future_is_polled() {
        let log = Log::default();
        let mut future = pin!(waiting(log.clone()));
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(log.take(), ["pause", "resume", "work", "pause"]);
        assert!(poll(future.as_mut()).is_ready());
        assert_eq!(log.take(), ["resume", "work", "pause", "resume", "body", "end"]);
    }

    #[test]
    fn call_is_paused_after_a_poll_that_panics() {
        let log = Log::default();
        let scope = scope(&log);
        let mut future =
            pin!(awaiting((poll_fn(|_| -> Poll<()> { panic!("on purpose") }),), &scope));
        assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err());
        assert_eq!(log.take(), ["pause", "resume", "pause"]);
    }

    #[test]
    fn awaited_future_has_only_a_reference_more() {
        let (log, future) = (Log::default(), std::future::ready([0_u64; 64]));
        let (alone, scope) = (size_of_val(&future), scope(&log));
        assert_eq!(size_of_val(&awaiting((future,), &scope)), alone + size_of::<usize>());
    }

    /// Another thread may continue it.
    #[test]
    fn call_is_on_the_stack_while_it_is_polled() {
        let mut future = pin!(async {
            let scope = scope(&Log::default());
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
        let log = Log::default();
        {
            let mut future = pin!(waiting(log.clone()));
            assert!(poll(future.as_mut()).is_pending());
        }
        assert_eq!(log.take(), ["pause", "resume", "work", "pause", "cancelled"]);
    }

    #[test]
    fn panic_in_the_future_leaves_the_call_paused() {
        let log = Log::default();
        let mut future = pin!(async {
            let scope = scope(&log);
            let work = poll_fn(|_| -> Poll<()> { panic!("on purpose") });
            awaited(((), awaiting((work,), &scope).await), &scope);
        });
        assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err());
        assert_eq!(log.take(), ["pause", "resume", "pause", "failed"]);
    }

    #[test]
    fn macro_left_by_break_pauses_once() {
        let log = Log::default();
        let scope = scope(&log);
        for _ in 0..2 {
            scope.suspend();
        }
        awaited(((), ()), &scope);
        awaited(((), ()), &scope);
        assert_eq!(log.take(), ["pause", "resume"]);
    }
}
