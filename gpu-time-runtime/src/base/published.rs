//! A reference that one thread publishes for all threads to read.

#![allow(unsafe_code)] // one dereference

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A reference that is set once.
///
/// Unlike a `OnceLock`, it is read with a single load, which keeps untimed calls cheap.
pub(crate) struct Published<T: 'static>(AtomicPtr<T>, PhantomData<&'static T>);

impl<T: Sync> Published<T> {
    /// Creates an unset reference.
    pub fn unset() -> Published<T> {
        Published(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// Returns the reference, once it is set.
    #[inline(always)]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or was made from a `&'static T` by `set`, whose store this load sees.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Sets the reference, unless it is set already.
    pub fn set(&self, value: &'static T) {
        let value = ptr::from_ref(value).cast_mut();
        // Fails if the reference is already set, and keeps the first value.
        _ = self.0.compare_exchange(ptr::null_mut(), value, Release, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_value_stays() {
        let published = Published::unset();
        assert_eq!(published.get(), None);
        published.set(&1);
        published.set(&2);
        assert_eq!(published.get(), Some(&1));
    }
}
