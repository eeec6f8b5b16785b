//! When and how the end of the process is met.
//!
//! Exit handlers run in the reverse order of their registration, and the driver's own teardown is one
//! of them. So ours is registered when the first context has been seen: then it runs before that, and
//! its driver calls are still answered.

#![allow(unsafe_code)] // two registrations with the C library

use std::panic;
use std::sync::Once;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::Duration;

#[cfg(feature = "signals")]
use crate::base::console;
#[cfg(feature = "signals")]
use crate::base::signals;
#[cfg(any(feature = "nvml", feature = "signals"))]
use crate::base::signals::Handlers;
use crate::base::{clock, fork, switches, thread_id};
use crate::record::drain;
use crate::{collect, cuda, export, health};

/// The GPU gets so long to finish what is in flight.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(200);

/// Whether a report is to be made at all.
static ARMED: AtomicBool = AtomicBool::new(false);

/// Sees to it that a report is made when the process ends.
pub(crate) fn arm() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fork::mark_children();
        clock::started();
        ARMED.store(true, Relaxed);
        register();
        arm_what_lives_on();
    });
}

/// The same, now that a context was seen: registered again, because the driver may have registered
/// its own teardown in between. Only the first handler to run reports.
pub(crate) fn arm_for_driver() {
    static ONCE: Once = Once::new();
    arm();
    ONCE.call_once(register);
}

/// Handlers of the signals that ask for a report or end the process.
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) const HANDLERS: Handlers =
    Handlers { report: collect::report, end, give_back: health::give_clocks_back };

/// Starts what works beside the program as long as it runs.
fn arm_what_lives_on() {
    export::arm();
    #[cfg(feature = "signals")]
    if let Err(error) = signals::watch_to_report(HANDLERS) {
        console::say(&format!("signals cannot be watched for: {error}"));
    }
}

/// What is left of that where timing is off for good.
pub(crate) fn arm_while_off() {
    #[cfg(feature = "signals")]
    {
        static ONCE: Once = Once::new();
        ONCE.call_once(signals::watch_while_off);
    }
}

/// Sees to it that locked clocks are given back when the process ends, with or without a report.
#[cfg(feature = "nvml")]
pub(crate) fn arm_for_clocks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(register);
}

fn register() {
    // SAFETY: `at_exit` does not unwind. Should the list of handlers be full, no report is made.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    if !fork::is_forked() {
        end();
    }
}

/// Stops timing, reports, and gives the clocks back, once. Whoever comes second waits for the first, or
/// else would end the process in the middle of it.
pub(crate) fn end() {
    /// The thread that came first; 0 is none.
    static FIRST: AtomicU64 = AtomicU64::new(0);
    static ENDED: AtomicBool = AtomicBool::new(false);
    let thread = thread_id::current();
    match FIRST.compare_exchange(0, thread, Relaxed, Relaxed) {
        Ok(_) => {
            report_and_give_back();
            ENDED.store(true, Release);
        }
        // A handler of the program's called `exit` in the middle of it.
        Err(first) if first == thread => {}
        Err(_) => {
            while !ENDED.load(Acquire) {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn report_and_give_back() {
    // A panic must not leave this function, and its message would help nobody now.
    _ = panic::catch_unwind(|| {
        switches::close();
        for context in cuda::contexts() {
            context.release_holds(false);
        }
        drain::wait_for_gpu(PATIENCE);
        let one_at_a_time = collect::reporting();
        // This holds our own streams, so it comes before holds are over for good.
        collect::check_calibrations();
        for context in cuda::contexts() {
            context.release_holds(true);
        }
        if ARMED.load(Relaxed) {
            collect::write_reports();
        }
        drop(one_at_a_time);
    });
    // After the report, which still sees them, and whatever became of it.
    _ = panic::catch_unwind(health::give_clocks_back);
}
