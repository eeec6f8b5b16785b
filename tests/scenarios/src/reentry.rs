//! Calls that interrupt the runtime on their own thread: from a signal handler, and from the global
//! allocator.

use std::cell::Cell;
use std::ffi::c_int;
use std::hint::{black_box, spin_loop};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::Gpu;
use crate::scenario::Scenario;
use crate::tally;

pub const SCENARIOS: &[Scenario] =
    &[("reentry/handler", handler), ("reentry/allocator", allocator)];

/// The number of signals that interrupt the loop.
const SIGNALS: u64 = 5_000;

static ON_HOST: AtomicU64 = AtomicU64::new(0);
static SAMPLED: AtomicU64 = AtomicU64::new(0);
static OFF: AtomicU64 = AtomicU64::new(0);
static ON_GPU: AtomicU64 = AtomicU64::new(0);
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

// The bodies are safe in a signal handler: they count without `ran!`, which allocates.

#[gpu_timed(clock = "host", warmup = 50)]
fn on_host() {
    ON_HOST.fetch_add(1, Relaxed);
}

#[gpu_timed(clock = "host", sample = 0.3)]
fn sampled() {
    SAMPLED.fetch_add(1, Relaxed);
}

/// Excluded by the filter, so that its calls are only counted.
#[gpu_timed(clock = "host")]
fn off() {
    OFF.fetch_add(1, Relaxed);
}

#[gpu_timed(scope = "body")]
fn on_gpu(stream: &Arc<CudaStream>) {
    let _ = stream;
    ON_GPU.fetch_add(1, Relaxed);
}

/// Called only from the handler and the allocator.
#[gpu_timed(clock = "host", bytes = now_timed())]
fn interrupting() {
    INTERRUPTING.fetch_add(1, Relaxed);
}

thread_local! {
    /// The number of calls to `interrupting` on this thread, and how many of them were timed.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static TIMED: Cell<u64> = const { Cell::new(0) };
}

/// Counts a timed call, because `bytes` is evaluated only for timed calls.
fn now_timed() -> u64 {
    TIMED.set(TIMED.get() + 1);
    1
}

/// Calls `interrupting` and returns `true` if the call was timed.
fn interrupting_is_timed() -> bool {
    let before = TIMED.get();
    CALLS.set(CALLS.get() + 1);
    interrupting();
    TIMED.get() > before
}

fn print_tally() {
    for (name, runs) in [
        ("on_host", &ON_HOST),
        ("sampled", &SAMPLED),
        ("off", &OFF),
        ("on_gpu", &ON_GPU),
        ("interrupting", &INTERRUPTING),
    ] {
        let runs = runs.load(Relaxed);
        if runs > 0 {
            tally::count_runs(&format!("scenario::reentry::{name}"), runs);
        }
    }
    tally::print();
}

static STREAM: OnceLock<Arc<CudaStream>> = OnceLock::new();
/// The number of rounds of the loop, of handled signals, and of signals that interrupted the runtime.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static INSIDE: AtomicU64 = AtomicU64::new(0);

fn call_all() {
    on_host();
    sampled();
    off();
    on_gpu(STREAM.get().expect("set before the first signal"));
}

extern "C" fn on_signal(_: c_int) {
    call_all();
    if !interrupting_is_timed() {
        INSIDE.fetch_add(1, Relaxed);
    }
    HANDLED.fetch_add(1, Relaxed);
}

/// Handles signals by calling the functions that the interrupted thread is calling. The runtime makes
/// all driver calls and allocations in the loop, so the handler interrupts no others.
fn handler(_: &[String]) {
    let gpu = Gpu::new();
    STREAM.get_or_init(|| gpu.stream.clone());
    let handler = on_signal as extern "C" fn(c_int) as usize;
    // SAFETY: the handler makes no call that is unsafe where it can interrupt.
    let (previous, main) = unsafe { (libc::signal(libc::SIGALRM, handler), libc::pthread_self()) };
    assert_ne!(previous, libc::SIG_ERR);
    // The handler makes the first calls.
    // SAFETY: as above.
    assert_eq!(unsafe { libc::raise(libc::SIGALRM) }, 0);
    let sender = thread::spawn(move || {
        for sent in 1..SIGNALS {
            // The loop makes progress however fast the signals come, and each signal arrives at a
            // different point of a round.
            let round = ROUNDS.load(Relaxed);
            while ROUNDS.load(Relaxed) == round {
                thread::yield_now();
            }
            (0..sent * 37 % 512).for_each(|_| spin_loop());
            // SAFETY: the main thread joins this one before it ends.
            assert_eq!(unsafe { libc::pthread_kill(main, libc::SIGALRM) }, 0);
            while HANDLED.load(Relaxed) <= sent {
                thread::yield_now();
            }
        }
    });
    while HANDLED.load(Relaxed) < SIGNALS {
        call_all();
        if ROUNDS.fetch_add(1, Relaxed).is_multiple_of(1_000) {
            // Not dropped, because a signal must not interrupt the program's own call to the allocator.
            mem::forget(gpu_time::snapshot());
        }
    }
    sender.join().unwrap();
    gpu.synchronize();
    for (name, count) in [("rounds", &ROUNDS), ("signals", &HANDLED), ("inside", &INSIDE)] {
        tally::fact(name, count.load(Relaxed));
    }
    print_tally();
}

/// Set while every allocation calls an annotated function.
static IS_CALLING: AtomicBool = AtomicBool::new(false);

/// Calls an annotated function inside the allocator.
pub fn allocating() {
    if IS_CALLING.load(Relaxed) {
        interrupting_is_timed();
    }
}

/// Returns how often `work` called `interrupting` on this thread, and how many of these calls were
/// timed.
fn count_interrupting(work: impl FnOnce()) -> [u64; 2] {
    let before = [CALLS.get(), TIMED.get()];
    work();
    [CALLS.get() - before[0], TIMED.get() - before[1]]
}

/// Makes every first call from the allocator: the program's, each thread's, the first in a context,
/// and the first during a report.
fn allocator(_: &[String]) {
    let gpu = Gpu::new();
    IS_CALLING.store(true, Relaxed);
    let own_timed = AtomicU64::new(0);
    let work = || {
        for _ in 0..200 {
            on_host();
            on_gpu(&gpu.stream);
            let [_, timed] = count_interrupting(|| drop(black_box(Box::new(1))));
            own_timed.fetch_add(timed, Relaxed);
        }
    };
    work();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    thread::spawn(|| drop(black_box(vec![1; 10]))).join().unwrap();
    let [report_calls, report_timed] = count_interrupting(gpu_time::report);
    let timeout = Duration::from_millis(20);
    gpu_time::until_stable(gpu_time::Settle::default().timeout(timeout), on_host);
    gpu.synchronize();
    IS_CALLING.store(false, Relaxed);
    tally::fact("own timed", own_timed.into_inner());
    tally::fact("report calls", report_calls);
    tally::fact("report timed", report_timed);
    print_tally();
}
