//! A global allocator for tests that counts the allocations of each thread.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    // Without destructors, so that they exist for as long as a thread allocates.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(size: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + u64::from(size > 0));
    BYTES.set(BYTES.get() + size);
    PEAK.set(PEAK.get().max(BYTES.get()));
}

// SAFETY: every request goes to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the number of allocations that this thread makes while it runs `work`.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Returns the number of bytes by which this thread's allocations grow in `work`, and the result of `work`.
pub(crate) fn bytes_kept<T>(work: impl FnOnce() -> T) -> (i64, T) {
    let before = BYTES.get();
    let value = work();
    (BYTES.get() - before, value)
}

/// Returns the most bytes by which this thread's allocations grow at any time in `work`.
pub(crate) fn peak_bytes(work: impl FnOnce()) -> i64 {
    let before = BYTES.get();
    PEAK.set(before);
    work();
    PEAK.get() - before
}
