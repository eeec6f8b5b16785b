//! The program's allocator, which some scenarios watch.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::{reentry, trace};

struct WatchedAllocator;

#[global_allocator]
static ALLOCATOR: WatchedAllocator = WatchedAllocator;

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for WatchedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        reentry::allocating();
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        reentry::allocating();
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        reentry::allocating();
        // SAFETY: as for the caller.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        reentry::allocating();
        trace::freeing(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}
