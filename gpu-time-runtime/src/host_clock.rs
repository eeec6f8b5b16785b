//! The host's time.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the clock was first read, by the monotonic clock.
#[inline]
pub(crate) fn now_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    now.saturating_duration_since(*FIRST.get_or_init(|| now)).as_nanos() as u64
}
