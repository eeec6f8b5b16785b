//! Counts what the program allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

struct Counting;

thread_local! {
    // Without a destructor, so that it is there for as long as a thread allocates.
    static MADE: Cell<u64> = const { Cell::new(0) };
}
static IN_USE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(layout: Layout) {
    MADE.set(MADE.get() + 1);
    IN_USE.fetch_add(layout.size() as i64, Relaxed);
}

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often this thread has allocated memory: the one that watches the device's clocks allocates as it
/// likes.
pub fn made() -> u64 {
    MADE.get()
}

/// Bytes that are allocated now.
pub fn in_use() -> i64 {
    IN_USE.load(Relaxed)
}
