//! Detection of calls that interrupt the runtime on their own thread.
//!
//! A signal handler or the global allocator may call an annotated function while its thread holds locks of
//! the runtime, or is in a driver call of the runtime. Such a call takes no lock, allocates nothing and makes
//! no driver call. It is counted as skipped.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

thread_local! {
    // Constant and without a destructor, so that a handler and the allocator can read it at any time.
    static IS_INSIDE: AtomicBool = const { AtomicBool::new(false) };
}

/// Marks the calling thread as inside the runtime, or in the user's code called from it, until dropped.
#[must_use]
pub struct Inside {
    before: bool,
    stays_on_its_thread: PhantomData<*const ()>,
}

/// Marks the calling thread as inside the runtime.
#[inline]
pub(crate) fn enter() -> Inside {
    mark(true)
}

/// Marks the calling thread as inside the runtime. Returns `None` if it already is.
#[inline]
pub(crate) fn try_enter() -> Option<Inside> {
    if is_inside() { None } else { Some(enter()) }
}

/// Runs the user's code from inside the runtime. Annotated functions that it calls are timed as usual.
#[inline]
pub(crate) fn outside<T>(run: impl FnOnce() -> T) -> T {
    let _outside = mark(false);
    run()
}

/// Returns `true` while the calling thread is inside the runtime.
#[inline]
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.with(|inside| inside.load(Relaxed))
}

#[inline]
fn mark(is_inside: bool) -> Inside {
    let before = IS_INSIDE.with(|inside| {
        let before = inside.load(Relaxed);
        inside.store(is_inside, Relaxed);
        before
    });
    // Only code that interrupts this thread reads the flag, so a compiler fence is enough.
    compiler_fence(SeqCst);
    Inside { before, stays_on_its_thread: PhantomData }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        IS_INSIDE.with(|inside| inside.store(self.before, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_entry_is_refused_until_first_ends() {
        let first = try_enter();
        assert!(first.is_some() && try_enter().is_none());
        drop(enter());
        assert!(is_inside(), "the end of an inner region does not end the outer one");
        drop(first);
        assert!(try_enter().is_some());
    }

    #[test]
    fn user_code_is_outside_even_if_it_panics() {
        let _inside = enter();
        let panicked = std::panic::catch_unwind(|| {
            outside(|| {
                assert!(try_enter().is_some());
                panic!("planted");
            })
        });
        assert!(panicked.is_err() && is_inside());
    }
}
