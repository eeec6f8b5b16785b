//! The thread that takes [records](super::records) from CUPTI: ten times a second while calls or windows wait for
//! theirs, and whenever CUPTI's buffers fill. Every report does so as well.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{LazyLock, Once, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

#[cfg(feature = "kernels")]
use crate::base::clock;
#[cfg(feature = "kernels")]
use crate::base::lock::locked;
use crate::base::lock::{Mutex, MutexGuard, Rank, locked_by};
use crate::base::{background, fork, switches};
use crate::cupti::{self, DrainKind};
use crate::record::opened::call_exchange;
use crate::record::opened::open_call::OpenCall;
use crate::record::opened::waiting_call::WaitingCall;
use crate::record::records::{IS_ABANDONED, Records, WINDOWS_WAIT};
use crate::types::sample::Lost;

/// The time between two collections by the thread while calls wait for their records.
const PERIOD: Duration = Duration::from_millis(100);

/// The thread that collects.
struct CollectorThread {
    started: Once,
    /// Set once the thread runs.
    thread: OnceLock<Thread>,
}

static THREAD: CollectorThread = CollectorThread { started: Once::new(), thread: OnceLock::new() };

static RECORDS: LazyLock<Mutex<Records>> =
    LazyLock::new(|| Mutex::new(Rank::Records, Records::default()));

/// Adds a call that has ended.
pub(super) fn add(call: Box<OpenCall>) {
    match call_exchange::add_ended(call) {
        Ok(true) => wake(),
        Ok(false) => {}
        Err(call) => {
            let lost = WaitingCall::new(call).record(Some(Lost::Records), &[], None);
            call_exchange::give_back(lost);
        }
    }
}

/// Wakes the thread, because calls or windows wait for their records.
pub(super) fn wake() {
    THREAD.thread.get().into_iter().for_each(Thread::unpark);
}

/// Starts the thread once CUPTI has begun to record, so that its buffers do not fill.
pub(crate) fn keep_up() {
    if cupti::has_recorded() {
        THREAD.started.call_once(|| {
            // Without the thread, reports collect.
            _ = background::spawn("gpu-time-kernels", || {
                _ = THREAD.thread.set(thread::current());
                cupti::wake_when_buffers_fill();
                run();
            });
        });
    }
}

fn run() {
    while !switches::is_closed() && !fork::is_forked() {
        cupti::stop_unused();
        if !is_needed() && !cupti::is_recording() {
            thread::park_timeout(Duration::from_secs(1));
            continue;
        }
        // The records of a call that has not ended are taken only to make room for more.
        let are_due = wait_for_records() || is_needed();
        let Some(mut records) = records_by(Instant::now() + PERIOD) else { continue };
        if are_due {
            let due = records.due_drain();
            records.collect(due);
        } else {
            records.take_launches();
        }
    }
}

/// Waits for [`PERIOD`], or until CUPTI's buffers fill. Returns `true` if they do.
fn wait_for_records() -> bool {
    let end = Instant::now() + PERIOD;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        let are_filling = cupti::are_buffers_filling();
        if are_filling || rest.is_zero() {
            return are_filling;
        }
        thread::park_timeout(rest);
    }
}

/// Returns `true` if calls wait for their records.
pub(crate) fn is_waiting() -> bool {
    call_exchange::waiting() > 0
}

/// Returns `true` if calls or windows wait for their records. A window with a graph may do so for long after the GPU has
/// ended its work.
fn is_needed() -> bool {
    is_waiting() || WINDOWS_WAIT.load(Relaxed)
}

/// Waits until no call or window waits for its records, or until the deadline.
#[cfg(feature = "kernels")]
pub(super) fn wait_until_collected(deadline: Instant) {
    collect(deadline);
    clock::wait_until(deadline, PERIOD, || switches::is_closed() || !is_needed());
}

/// Flushes CUPTI, and records the calls that are complete. Does nothing if another thread is still doing so
/// at the deadline.
pub(crate) fn collect(deadline: Instant) {
    if fork::is_forked() {
        return;
    }
    if let Some(mut records) = records_by(deadline) {
        records.collect(DrainKind::Flushed);
    }
}

/// Collects once more, and counts the calls that still wait for a record as lost. For the last report.
pub(crate) fn give_up(deadline: Instant) {
    if fork::is_forked() {
        return;
    }
    match records_by(deadline) {
        Some(mut records) => {
            records.collect(DrainKind::Last);
            records.give_up();
        }
        None => IS_ABANDONED.store(true, Relaxed),
    }
}

/// Locks the records, so that none are taken meanwhile. `None` if another thread is still using them at the deadline.
pub(crate) fn records_by(deadline: Instant) -> Option<MutexGuard<'static, Records>> {
    locked_by(&RECORDS, deadline)
}

/// Locks the records.
#[cfg(feature = "kernels")]
pub(crate) fn records() -> MutexGuard<'static, Records> {
    locked(&RECORDS)
}
