//! A trace that ends while other threads call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time::gpu_timed;

use crate::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("trace/ends", ends)];

/// What a trace keeps is larger than anything else here.
const LARGE: usize = 1 << 20;
/// A call takes a microsecond.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether large memory that is freed waits for a call on another thread.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// How often it was freed, and how often nothing was called meanwhile.
static FREED: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;

// SAFETY: the system's.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller's.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() >= LARGE && IS_WATCHED.load(SeqCst) {
            FREED.fetch_add(1, SeqCst);
            if !somebody_calls() {
                STUCK.fetch_add(1, SeqCst);
            }
        }
        // SAFETY: as the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Whether two calls come to their end. The first may have begun before.
fn somebody_calls() -> bool {
    let (before, deadline) = (CALLS.load(SeqCst), Instant::now() + LIMIT);
    while CALLS.load(SeqCst) < before + 2 {
        if Instant::now() > deadline {
            return false;
        }
        thread::yield_now();
    }
    true
}

#[gpu_timed(clock = "host")]
fn timed() {
    ran!();
}

/// What was kept is freed while another thread calls.
fn ends(_: &[String]) {
    // The program says what the environment was to say.
    let targets = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: there is no other thread.
    unsafe { std::env::remove_var("GPU_TIME_REPORT") };
    gpu_time::configure().report(&format!("{targets},trace:/dev/null")).apply();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                timed();
                CALLS.fetch_add(1, SeqCst);
            }
        });
        assert!(somebody_calls());
        IS_WATCHED.store(true, SeqCst);
        gpu_time::configure().report(&targets).apply();
        IS_WATCHED.store(false, SeqCst);
        is_over.store(true, SeqCst);
    });
    tally::fact("freed", FREED.load(SeqCst));
    tally::fact("stuck", STUCK.load(SeqCst));
    tally::print();
}
