//! A trace that is switched off while other threads are making calls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time::gpu_timed;

use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[("trace/switched_off", switched_off)];

/// A lower bound on the size of a trace's buffers. No other allocation here is as large.
const LARGE: usize = 1 << 20;
/// The time limit for a call, which normally takes about a microsecond.
const LIMIT: Duration = Duration::from_secs(10);

/// Set to make every free of a large allocation wait for a call on another thread.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// The number of large allocations freed, and the number of these frees during which no call completed.
static FREED: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Counts the large allocations freed while `IS_WATCHED` is set, and those frees during which calls do not continue.
pub fn freeing(size: usize) {
    if size >= LARGE && IS_WATCHED.load(SeqCst) {
        FREED.fetch_add(1, SeqCst);
        if !calls_continue() {
            STUCK.fetch_add(1, SeqCst);
        }
    }
}

/// Returns `true` once two calls have completed. The first one may have begun earlier.
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

/// Frees the trace's buffers while another thread makes calls.
fn switched_off(_: &[String]) {
    // The program passes on the targets given by the environment.
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
