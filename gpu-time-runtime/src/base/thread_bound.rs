//! Values that only the thread that made them can access.

#![allow(unsafe_code)] // `Send` and `Sync` for values that stay on their thread

use std::mem::ManuallyDrop;

use crate::base::thread_id;

/// A value that any thread may own, but only the thread that made it can access. Dropping it on another
/// thread leaks the value.
///
/// Invariant: `thread` made `value`, and no other thread touches it.
pub struct ThreadBound<T> {
    thread: u64,
    value: ManuallyDrop<T>,
}

// SAFETY: the methods touch `value` only on the thread that made it, and no two threads have the same
// number.
unsafe impl<T> Send for ThreadBound<T> {}
// SAFETY: as for `Send`; a shared reference gives another thread no access either.
unsafe impl<T> Sync for ThreadBound<T> {}

impl<T> ThreadBound<T> {
    /// Binds the value to the calling thread.
    pub(crate) fn new(value: T) -> Self {
        ThreadBound { thread: thread_id::current(), value: ManuallyDrop::new(value) }
    }

    /// Returns the value on its own thread, `None` on any other.
    pub(crate) fn get(&self) -> Option<&T> {
        if self.thread == thread_id::current() { Some(&self.value) } else { None }
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: the value is dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::thread;

    use super::ThreadBound;

    #[test]
    fn value_is_reached_and_dropped_on_its_thread_only() {
        let value = Rc::new(1);
        let bound = ThreadBound::new(Rc::clone(&value));
        assert_eq!(bound.get().map(|value| **value), Some(1));
        drop(bound);
        assert_eq!(Rc::strong_count(&value), 1);

        let bound = ThreadBound::new(Rc::clone(&value));
        let seen =
            thread::scope(|scope| scope.spawn(|| bound.get().is_some()).join().expect("no panic"));
        assert!(!seen);
        thread::spawn(move || drop(bound)).join().expect("no panic");
        assert_eq!(Rc::strong_count(&value), 2, "leaked rather than dropped on another thread");
    }
}
