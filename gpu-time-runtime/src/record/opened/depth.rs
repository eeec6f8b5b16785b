//! The number of calls that run on a thread and are not part of an opened call.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The depth of a thread inside calls that are not part of an opened call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallDepth {
    /// The number of calls timed by events.
    pub by_events: u32,
    /// The number of calls that were not chosen to be opened.
    pub passed_over: u32,
    /// The number of other calls that are marked for a window, which attributes their launches.
    pub marked: u32,
}

thread_local! {
    /// It has no destructor, so callbacks can read it while the thread exits.
    static DEPTH: Cell<CallDepth> =
        const { Cell::new(CallDepth { by_events: 0, passed_over: 0, marked: 0 }) };
}

impl CallDepth {
    /// Returns the depth of the calling thread.
    #[inline]
    pub fn current() -> CallDepth {
        DEPTH.get()
    }

    /// Returns the number of calls of all kinds.
    pub fn total(self) -> u32 {
        self.by_events.saturating_add(self.passed_over).saturating_add(self.marked)
    }
}

/// The depth of a thread when a call began or continued there.
#[derive(Debug, Default)]
pub(crate) struct DepthAround {
    // Atomic because threads may share a future. Only the one that runs it uses them.
    by_events: AtomicU32,
    passed_over: AtomicU32,
    marked: AtomicU32,
}

impl DepthAround {
    /// Saves the calling thread's depth, and changes it.
    #[inline]
    pub fn enter(&self, change: impl FnOnce(&mut CallDepth)) {
        let mut depth = DEPTH.get();
        self.by_events.store(depth.by_events, Relaxed);
        self.passed_over.store(depth.passed_over, Relaxed);
        self.marked.store(depth.marked, Relaxed);
        change(&mut depth);
        DEPTH.set(depth);
    }

    /// Restores the saved depth. What began inside the call and has not ended by now may never end, such as a guard
    /// that was leaked, and no longer counts.
    #[inline]
    pub fn leave(&self) {
        let CallDepth { by_events, passed_over, marked } = DEPTH.get();
        // It is smaller if guards are dropped in the order in which they were created.
        DEPTH.set(CallDepth {
            by_events: by_events.min(self.by_events.load(Relaxed)),
            passed_over: passed_over.min(self.passed_over.load(Relaxed)),
            marked: marked.min(self.marked.load(Relaxed)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter() -> DepthAround {
        let around = DepthAround::default();
        around.enter(|depth| depth.passed_over += 1);
        around
    }

    fn depth() -> u32 {
        CallDepth::current().passed_over
    }

    /// Runs a test on a new thread, which is inside no call.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    #[test]
    fn end_of_a_call_ends_what_was_leaked_inside() {
        alone(|| {
            let [outer, _leaked] = [enter(), enter()];
            DepthAround::default().enter(|depth| depth.by_events += 1);
            assert_eq!(CallDepth::current().total(), 3);
            outer.leave();
            assert_eq!(CallDepth::current().total(), 0);
        });
    }

    #[test]
    fn calls_may_end_in_any_order() {
        alone(|| {
            let [first, second] = [enter(), enter()];
            first.leave();
            let [third, fourth] = [enter(), enter()];
            second.leave();
            fourth.leave();
            assert_eq!(depth(), 1);
            third.leave();
            assert_eq!(depth(), 0);
        });
    }

    #[test]
    fn call_may_continue_at_another_depth() {
        alone(|| {
            let waits = enter();
            waits.leave();
            let outer = enter();
            waits.enter(|depth| depth.passed_over += 1);
            assert_eq!(depth(), 2);
            waits.leave();
            assert_eq!(depth(), 1);
            outer.leave();
            assert_eq!(depth(), 0);
        });
    }
}
