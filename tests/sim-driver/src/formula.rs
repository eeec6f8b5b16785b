//! Closed formulas for an event pair's elapsed time in simple cases.
//!
//! The formulas share neither code nor constants with the model, so that a test does not compare
//! the model with itself. They are valid for the default constants.

/// Resolution of device times.
const STEP: u64 = 32;
/// Time for which an event record occupies its stream.
const EVENT: u64 = 1_280;
/// Time for which a kernel occupies its stream in addition to its length.
const GAP: u64 = 925;
/// Delay from the return of a call until the device can start its command.
const SUBMIT: u64 = 1_500;
/// Delay from a device time until the host can see that it has passed.
const VISIBLE: u64 = 2_000;

fn up(ns: u64) -> u64 {
    ns.div_ceil(STEP) * STEP
}

/// Returns the length of `spin_ns(ns)`, as reported by CUPTI.
pub fn spin_ns(ns: u64) -> u64 {
    up(ns) + 672
}

/// Length of `empty` and `gpu_time_empty`.
pub const EMPTY_NS: u64 = 545;

/// Returns the length of a copy of `n16` words of 16 bytes that are all in the L2.
pub fn hot_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 7_360
}

/// Like [`hot_copy_ns`], but with an L2 full of other, clean lines.
pub fn cold_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 3_850
}

/// Like [`hot_copy_ns`], but with an L2 full of other, dirty lines.
pub fn cold_dirty_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 3_850 + 32 * n16 / 8_560
}

/// Returns the length of a copy of `bytes` bytes to the memory of another device.
pub fn peer_copy_ns(bytes: u64) -> u64 {
    1_400 + bytes / 400
}

/// Returns the elapsed time of a fed pair around kernels with these lengths: earlier work on the
/// stream keeps the device busy until the stop is enqueued. `1280 + Σ up(length + 925)`.
pub fn fed_pair_ns(kernels: &[u64]) -> u64 {
    EVENT + kernels.iter().map(|length| up(length + GAP)).sum::<u64>()
}

/// Returns the elapsed time of a starved pair around kernels: the stream is empty at the start.
/// `start`, `launches` and `stop` are the virtual host times at which the calls that enqueued the
/// start, the kernels and the stop returned. Each command starts when the preceding one has ended
/// and the device can see the command.
pub fn starved_pair_ns(start: u64, launches: &[u64], kernels: &[u64], stop: u64) -> u64 {
    assert_eq!(launches.len(), kernels.len());
    let began = up(start + SUBMIT) + EVENT;
    let mut end = began;
    for (launch, length) in launches.iter().zip(kernels) {
        end = end.max(up(launch + SUBMIT)) + up(length + GAP);
    }
    end.max(up(stop + SUBMIT)) + EVENT - began
}

/// Returns the virtual host time at which a wait for the stream returns. The stream contains only
/// these kernels. `launch` is the time at which the first launch returned; all other launches
/// returned before the first kernel ended.
pub fn seen_ns(launch: u64, kernels: &[u64]) -> u64 {
    up(launch + SUBMIT) + kernels.iter().map(|length| up(length + GAP)).sum::<u64>() + VISIBLE
}
