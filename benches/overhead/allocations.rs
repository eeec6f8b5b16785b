//! Counts what the program allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

struct Counting;

static MADE: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(layout: Layout) {
    MADE.fetch_add(1, Relaxed);
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

/// How often memory was allocated so far.
pub fn made() -> u64 {
    MADE.load(Relaxed)
}

/// Bytes that are allocated now.
pub fn in_use() -> i64 {
    IN_USE.load(Relaxed)
}
