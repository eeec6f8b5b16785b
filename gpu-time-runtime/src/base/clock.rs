//! The host's monotonic clock, and the moment from which the report counts.

#![allow(unsafe_code)] // `clock_gettime`

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Reads the clock behind `Instant`, `CLOCK_MONOTONIC`, in nanoseconds.
///
/// Costs half as much as an `Instant`, which must be subtracted from another one to give a number.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the time when the program, or the plugin with this code, was loaded: that of the first call of this
/// function.
pub(crate) fn loaded() -> SystemTime {
    static LOADED: OnceLock<SystemTime> = OnceLock::new();
    *LOADED.get_or_init(SystemTime::now)
}

/// The moment when the runtime was first used, on both clocks.
#[derive(Clone, Copy)]
pub(crate) struct StartTime {
    pub wall: SystemTime,
    pub monotonic: Instant,
}

/// Returns the moment when the runtime was first used, which is the first call of this function.
pub(crate) fn started() -> StartTime {
    static STARTED: OnceLock<StartTime> = OnceLock::new();
    *STARTED.get_or_init(|| StartTime { wall: SystemTime::now(), monotonic: Instant::now() })
}

/// Returns the nanoseconds from [`started`] to `moment`.
pub(crate) fn since_start_ns(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(started().monotonic);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The interval for waits that end soon.
pub(crate) const BRIEFLY: Duration = Duration::from_micros(50);

/// Asks at this interval until `is_done` returns `true`, or until the deadline. Returns the last answer.
pub(crate) fn wait_until(
    deadline: Instant,
    interval: Duration,
    mut is_done: impl FnMut() -> bool,
) -> bool {
    while !is_done() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(interval);
    }
    true
}
