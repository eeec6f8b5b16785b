//! The functions that each thread is inside of, as other threads see them.
//!
//! A thread that is inside of no function may work for one of another thread. CUPTI's callback looks for that function,
//! so it reads what all threads left here, without a lock. A thread writes only to memory of its own, and only when its
//! innermost function changes.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

/// The maximum number of threads that are looked at for one launch.
const MAX_THREADS: usize = 1_024;

/// The thread is inside of no function.
const OUTSIDE: u64 = 0;
/// The thread is inside of a function, but of none in an opened call.
const INSIDE: u64 = u64::MAX;
/// The thread is inside of an opened call, to which the work of other threads does not belong.
const ALONE: u64 = u64::MAX - 1;

/// The functions that one thread is inside of. Only that thread changes it, and the memory has no other user, so that a
/// change is cheap.
#[repr(align(64))]
pub(crate) struct ThreadFrames {
    /// The number of the thread's opened call, [`OUTSIDE`], [`INSIDE`] or [`ALONE`].
    call: AtomicU64,
    /// The innermost frame of that call, by its number in the call. Written before `call`.
    frame: AtomicU64,
    /// The next thread in the list of all, which only grows: threads reuse what ended ones leave.
    next: OnceLock<&'static ThreadFrames>,
}

/// What a thread is inside of, apart from its opened call.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Enclosing {
    /// Annotated functions, timed or not.
    Functions = 1,
    /// Spans of `tracing`, recorded or not.
    #[cfg(feature = "tracing")]
    Spans = 2,
}

/// A frame of the opened call of a thread, with which it is inside of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFrame {
    pub call: u64,
    /// The number of frames that were entered before it in its call.
    pub nth: u64,
}

/// The only thread that is inside of a function. What other threads enqueue most likely belongs to that function. With
/// several such threads there is no telling to which.
#[derive(Clone, Copy)]
pub(crate) struct OnlyThread {
    thread: &'static ThreadFrames,
    /// The innermost frame of its opened call. `None` if the function began before the phase, or if events time it:
    /// recorded ones stand for it.
    pub frame: Option<OpenFrame>,
}

/// The first in the list of all threads.
static FIRST: OnceLock<&'static ThreadFrames> = OnceLock::new();

thread_local! {
    // Without destructors, so that callbacks can use them until the thread ends.
    static OWN: Cell<Option<&'static ThreadFrames>> = const { Cell::new(None) };
    /// The bits of [`Enclosing`].
    static ENCLOSING: Cell<u8> = const { Cell::new(0) };
}

impl ThreadFrames {
    pub const fn new() -> ThreadFrames {
        ThreadFrames {
            call: AtomicU64::new(OUTSIDE),
            frame: AtomicU64::new(0),
            next: OnceLock::new(),
        }
    }

    /// Adds it to the list of all threads.
    pub fn register(&'static self) {
        let mut end = &FIRST;
        while end.set(self).is_err() {
            let Some(next) = end.get() else { return };
            end = &next.next;
        }
    }

    /// Makes it that of the calling thread.
    pub fn adopt(&'static self) {
        OWN.set(Some(self));
        if is_inside() {
            self.enter();
        }
    }

    fn enter(&self) {
        if self.call.load(Relaxed) == OUTSIDE {
            self.call.store(INSIDE, Relaxed);
        }
    }

    fn leave(&self) {
        if self.call.load(Relaxed) == INSIDE {
            self.call.store(OUTSIDE, Relaxed);
        }
    }

    fn set(&self, open: Option<OpenFrame>) {
        let Some(OpenFrame { call, nth }) = open else {
            return self.call.store(ALONE, Relaxed);
        };
        if self.frame.load(Relaxed) != nth {
            // Pairs with the load in `read`: who sees the frame sees that an earlier call has ended.
            self.frame.store(nth, Release);
        }
        if self.call.load(Relaxed) != call {
            // Pairs with the load in `read`, and makes the frame visible.
            self.call.store(call, Release);
        }
    }

    fn end_call(&self, is_inside: bool) {
        self.call.store(if is_inside { INSIDE } else { OUTSIDE }, Relaxed);
        // Pairs with the fence in `has_ended`. Either that sees the end of the call, or whoever takes the call over
        // sees what was noted for it.
        fence(SeqCst);
    }

    /// Returns whether the thread is inside of any function, and the frame of its opened call.
    fn read(&self) -> Option<Option<OpenFrame>> {
        let call = self.call.load(Acquire);
        if matches!(call, OUTSIDE | INSIDE | ALONE) {
            return (call != OUTSIDE).then_some(None);
        }
        let nth = self.frame.load(Acquire);
        let is_its = self.call.load(Relaxed) == call;
        Some(is_its.then_some(OpenFrame { call, nth }))
    }
}

impl OnlyThread {
    /// Returns `true` if its opened call has ended since. Otherwise it ends after everything that the calling thread did
    /// before.
    pub fn has_ended(&self) -> bool {
        fence(SeqCst);
        self.frame.is_some_and(|frame| self.thread.call.load(Relaxed) != frame.call)
    }
}

/// Gives up the calling thread's entry, because the thread ends.
pub(crate) fn leave_thread() {
    if let Some(own) = OWN.take() {
        own.end_call(false);
    }
}

/// Notes that the calling thread is inside of something.
#[inline]
pub(crate) fn enter(what: Enclosing) {
    ENCLOSING.set(ENCLOSING.get() | what as u8);
    OWN.get().into_iter().for_each(ThreadFrames::enter);
}

/// Notes that the calling thread is outside of something, except for what is in its opened call.
#[inline]
pub(crate) fn leave(what: Enclosing) {
    let rest = ENCLOSING.get() & !(what as u8);
    ENCLOSING.set(rest);
    if rest == 0 {
        OWN.get().into_iter().for_each(ThreadFrames::leave);
    }
}

/// Returns `true` if the calling thread is inside of anything, apart from its opened call. Takes no lock.
pub(crate) fn is_inside() -> bool {
    ENCLOSING.get() != 0
}

/// Returns `true` if other threads do not see what the calling thread is inside of, because it has no recorder yet.
#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn is_unseen() -> bool {
    OWN.get().is_none()
}

/// Notes the innermost frame of the calling thread's opened call. `None` if the work of other threads does not belong to
/// it.
pub(crate) fn set(open: Option<OpenFrame>) {
    OWN.get().into_iter().for_each(|own| own.set(open));
}

/// Notes that the calling thread has no opened call any more.
pub(crate) fn end_call() {
    OWN.get().into_iter().for_each(|own| own.end_call(is_inside()));
}

/// Returns the only thread that is inside of a function. `None` if there is no such thread, or more than
/// one, or if the work of other threads does not belong to its functions. Takes no lock and allocates nothing.
pub(crate) fn only_thread() -> Option<OnlyThread> {
    let (mut only, mut next) = (None, FIRST.get());
    for _ in 0..MAX_THREADS {
        let Some(&thread) = next else { break };
        if let Some(frame) = thread.read() {
            if only.is_some() {
                return None;
            }
            only = Some((thread, frame));
        }
        next = thread.next.get();
    }
    let (thread, frame) = only.filter(|_| next.is_none())?;
    let is_helped = frame.is_some() || thread.call.load(Relaxed) == INSIDE;
    is_helped.then_some(OnlyThread { thread, frame })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> &'static ThreadFrames {
        Box::leak(Box::new(ThreadFrames::new()))
    }

    const FRAME: OpenFrame = OpenFrame { call: 7, nth: 3 };

    #[test]
    fn frame_is_that_of_the_opened_call() {
        let thread = frames();
        assert_eq!(thread.read(), None);
        thread.set(Some(FRAME));
        thread.enter();
        assert_eq!(thread.read(), Some(Some(FRAME)));
        let inner = OpenFrame { nth: 4, ..FRAME };
        thread.set(Some(inner));
        assert_eq!(thread.read(), Some(Some(inner)));
        thread.set(None);
        assert_eq!(thread.read(), Some(None));
        thread.set(Some(FRAME));
        thread.leave();
        assert_eq!(thread.read(), Some(Some(FRAME)));
        thread.end_call(false);
        assert_eq!(thread.read(), None);
    }

    #[test]
    fn functions_that_are_not_opened_count() {
        let thread = frames();
        thread.enter();
        assert_eq!(thread.read(), Some(None));
        thread.set(Some(FRAME));
        thread.end_call(true);
        assert_eq!(thread.read(), Some(None));
        thread.leave();
        assert_eq!(thread.read(), None);
    }

    /// The frame that is read must never be that of another call.
    #[test]
    fn frame_and_call_are_read_together() {
        const CALLS: u64 = 50_000;
        let thread = frames();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for call in 1..=CALLS {
                    thread.set(Some(OpenFrame { call, nth: !call }));
                    thread.end_call(false);
                }
                thread.set(None);
            });
            loop {
                match thread.read() {
                    Some(Some(OpenFrame { call, nth })) => assert_eq!(nth, !call),
                    // Also where a call ends between two loads.
                    Some(None) if thread.call.load(Relaxed) == ALONE => break,
                    _ => {}
                }
            }
        });
    }
}
