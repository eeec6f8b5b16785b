//! A future with code around each of its polls.

#![allow(unsafe_code)] // one pin projection

use std::pin::Pin;
use std::task::{Context, Poll};

/// Code to run around each poll of a future, on the thread that polls it.
pub trait PollHook {
    /// Runs before the poll.
    fn before(&self);

    /// Runs after the poll, even if it panics.
    fn after(&self);
}

/// A future, and the code that runs around its polls.
///
/// Invariant: `future` is pinned when this is.
#[must_use = "futures do nothing unless polled"]
pub struct Polled<F, A> {
    future: F,
    around: A,
}

impl<F, A> Polled<F, A> {
    pub(crate) fn new(future: F, around: A) -> Self {
        Polled { future, around }
    }
}

impl<F: Future, A: PollHook + Copy> Future for Polled<F, A> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _after = After::new(self.around);
        // SAFETY: nothing else gives access to `future`, so it is not moved before it is dropped in place:
        // this type has no `Drop`, and is `Unpin` only if `future` is.
        let future = unsafe { self.map_unchecked_mut(|polled| &mut polled.future) };
        future.poll(context)
    }
}

/// Runs the code after a poll when it is dropped.
struct After<A: PollHook>(A);

impl<A: PollHook> After<A> {
    fn new(around: A) -> Self {
        around.before();
        After(around)
    }
}

impl<A: PollHook> Drop for After<A> {
    fn drop(&mut self) {
        self.0.after();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{self, poll_fn};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    type Log = RefCell<Vec<&'static str>>;

    impl PollHook for &Log {
        fn before(&self) {
            self.borrow_mut().push("before");
        }

        fn after(&self) {
            self.borrow_mut().push("after");
        }
    }

    #[test]
    fn code_runs_around_each_poll() {
        let log = Log::default();
        let mut polls = 0;
        let mut polled = pin!(Polled::new(
            poll_fn(|_| {
                log.borrow_mut().push("poll");
                polls += 1;
                if polls < 2 { Poll::Pending } else { Poll::Ready(7) }
            }),
            &log,
        ));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(polled.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(log.take(), ["before", "poll", "after"]);
        assert_eq!(polled.as_mut().poll(&mut context), Poll::Ready(7));
        assert_eq!(log.take(), ["before", "poll", "after"]);
    }

    #[test]
    fn code_after_a_poll_runs_if_it_panics() {
        let log = Log::default();
        let mut polled = pin!(Polled::new(poll_fn(|_| -> Poll<()> { panic!("on purpose") }), &log));
        let poll = || polled.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
        assert_eq!(log.take(), ["before", "after"]);
    }

    #[test]
    fn size_is_that_of_the_future_and_a_reference() {
        let future = future::ready([0_u64; 64]);
        let [alone, polled] =
            [size_of_val(&future), size_of_val(&Polled::new(future, &Log::default()))];
        assert_eq!(polled, alone + size_of::<&Log>());
    }
}
