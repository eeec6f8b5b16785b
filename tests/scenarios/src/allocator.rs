//! The program's allocator, which some scenarios watch. It counts the memory that Rust code has
//! allocated, but not that of C libraries.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{reentry, trace};

struct WatchedAllocator;

/// The number of bytes in live allocations, by the binary logarithm of their size.
static ALLOCATED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Returns the number of bytes in live allocations, by the binary logarithm of their size.
pub fn allocated() -> [u64; 64] {
    ALLOCATED.each_ref().map(|bytes| bytes.load(Relaxed))
}

fn class(size: usize) -> &'static AtomicU64 {
    &ALLOCATED[size.max(1).ilog2() as usize]
}

#[global_allocator]
static ALLOCATOR: WatchedAllocator = WatchedAllocator;

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for WatchedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        reentry::allocating();
        class(layout.size()).fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        reentry::allocating();
        class(layout.size()).fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        reentry::allocating();
        class(layout.size()).fetch_sub(layout.size() as u64, Relaxed);
        class(size).fetch_add(size as u64, Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        reentry::allocating();
        trace::freeing(layout.size());
        class(layout.size()).fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}
