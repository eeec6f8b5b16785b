//! A trace that is switched off while other threads call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time::gpu_timed;

use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("trace/switched_off", switched_off)];

/// A lower bound on the size of a trace's buffers. Nothing else here is as large.
const LARGE: usize = 1 << 20;
/// A call takes about a microsecond.
const LIMIT: Duration = Duration::from_secs(10);

/// Set while freeing large memory waits for a call on another thread.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Large allocations freed, and those of them during which no call completed.
static FREED: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Counts the freeing of large memory while it is watched.
pub fn freeing(size: usize) {
    if size >= LARGE && IS_WATCHED.load(SeqCst) {
        FREED.fetch_add(1, SeqCst);
        if !calls_continue() {
            STUCK.fetch_add(1, SeqCst);
        }
    }
}

/// Returns `true` if two calls complete. The first may have begun before.
fn calls_continue() -> bool {
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

/// The trace's buffers are freed while another thread calls.
fn switched_off(_: &[String]) {
    // The program passes on the targets that the environment gave.
    let targets = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: no other thread is running.
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
        assert!(calls_continue());
        IS_WATCHED.store(true, SeqCst);
        gpu_time::configure().report(&targets).apply();
        IS_WATCHED.store(false, SeqCst);
        is_over.store(true, SeqCst);
    });
    tally::fact("freed", FREED.load(SeqCst));
    tally::fact("stuck", STUCK.load(SeqCst));
    tally::print();
}
