//! A global allocator that counts allocations and bytes in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

struct Counting;

thread_local! {
    // `Cell<u64>` has no destructor, so the counter remains usable while a thread is exiting.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}
static IN_USE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(layout: Layout) {
    COUNT.set(COUNT.get() + 1);
    IN_USE.fetch_add(layout.size() as i64, Relaxed);
}

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller upholds the contract of the same method.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the number of allocations made by this thread. Others do not count, because the thread
/// that monitors the device's clocks may allocate.
pub fn count_of_thread() -> u64 {
    COUNT.get()
}

/// Returns the number of bytes in use.
pub fn in_use() -> i64 {
    IN_USE.load(Relaxed)
}
