//! The observer of the driver's calls and work: at most one in a process, registered by the
//! stand-in for CUPTI.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::observed::{ObservedCall, ObservedTimes, ObservedWork, Observer};

static OBSERVER: AtomicPtr<Observer> = AtomicPtr::new(ptr::null_mut());

fn observer() -> Option<&'static Observer> {
    // SAFETY: only `register` stores to the pointer, and its caller guarantees the lifetime.
    unsafe { OBSERVER.load(Ordering::Acquire).as_ref() }
}

/// Registers the observer, which must live as long as the process.
pub(crate) fn register(observer: *const Observer) {
    OBSERVER.store(observer.cast_mut(), Ordering::Release);
}

/// Returns `true` if there is an observer.
pub(crate) fn is_registered() -> bool {
    observer().is_some()
}

/// Returns the number of a new driver call, which is never 0.
pub(crate) fn next_correlation() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

/// Reports a call to the observer.
pub(crate) fn call(call: &ObservedCall) {
    if let Some(observer) = observer() {
        // SAFETY: the pointer is valid during the call.
        unsafe { (observer.call)(call) };
    }
}

/// Reports enqueued work to the observer. Returns the number under which the observer wants its
/// times, or 0.
pub(crate) fn enqueued(work: &ObservedWork) -> u64 {
    // SAFETY: the pointer is valid during the call.
    observer().map_or(0, |observer| unsafe { (observer.enqueued)(work) })
}

/// Passes the times of work to the observer. Does nothing if `number` is 0.
pub(crate) fn ended(number: u64, times: ObservedTimes) {
    if let Some(observer) = observer().filter(|_| number != 0) {
        // SAFETY: the function accepts any values.
        unsafe { (observer.ended)(number, times) };
    }
}

/// Tells the observer that work will never run.
pub(crate) fn abandoned(number: u64) {
    ended(number, ObservedTimes { start_ns: 0, end_ns: 0, visible_ns: 0 });
}
