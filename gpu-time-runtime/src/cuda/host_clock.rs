//! The host's time.

/// Nanoseconds of the monotonic clock, which `Instant` reads as well. In this form it costs half as
/// much: an `Instant` must be subtracted from another to say anything.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
