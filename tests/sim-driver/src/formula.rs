//! What a pair of events reads in simple cases, in closed form.
//!
//! These share no code and no numbers with the model, so that a test which uses them does not
//! compare the model with itself. They hold for the built-in numbers.

/// The step of device times.
const STEP: u64 = 32;
/// What an event record occupies its stream for.
const EVENT: u64 = 1_280;
/// What a kernel occupies its stream for beyond its length.
const GAP: u64 = 925;
/// From the return of a call to when the device can act on it.
const SUBMIT: u64 = 1_500;
/// From a device time until the host can see that it has passed.
const VISIBLE: u64 = 2_000;

fn up(ns: u64) -> u64 {
    ns.div_ceil(STEP) * STEP
}

/// The length of `spin_ns(ns)` as CUPTI dates it.
pub fn spin_ns(ns: u64) -> u64 {
    up(ns) + 672
}

/// The length of `empty` and `gpu_time_empty`.
pub const EMPTY_NS: u64 = 545;

/// The length of a copy of `n16` words of 16 bytes that it finds in the L2, all of them.
pub fn hot_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 7_360
}

/// The same when the L2 is full of other, clean lines.
pub fn cold_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 3_850
}

/// The same when the L2 is full of other, dirty lines.
pub fn cold_dirty_copy_ns(n16: u64) -> u64 {
    1_400 + 32 * n16 / 3_850 + 32 * n16 / 8_560
}

/// The length of a copy of so many bytes to the memory of another device.
pub fn peer_copy_ns(bytes: u64) -> u64 {
    1_400 + bytes / 400
}

/// A pair around kernels of these lengths while the device was kept busy by earlier work of the
/// stream until after the stop was enqueued: `1280 + Σ up(length + 925)`.
pub fn fed_pair_ns(kernels: &[u64]) -> u64 {
    EVENT + kernels.iter().map(|length| up(length + GAP)).sum::<u64>()
}

/// A pair around kernels when the stream was empty at the start. `start` is the virtual host time
/// at which the call that recorded the start returned, `launches` those at which the launches did,
/// `stop` the same of the stop. Each command starts when the one before has ended and the device
/// has heard of it.
pub fn starved_pair_ns(start: u64, launches: &[u64], kernels: &[u64], stop: u64) -> u64 {
    assert_eq!(launches.len(), kernels.len());
    let began = up(start + SUBMIT) + EVENT;
    let mut end = began;
    for (launch, length) in launches.iter().zip(kernels) {
        end = end.max(up(launch + SUBMIT)) + up(length + GAP);
    }
    end.max(up(stop + SUBMIT)) + EVENT - began
}

/// When a call that waits for the stream returns, if these kernels are all that is in it and the
/// launch of the first returned at this virtual host time, those of the others before the first ended.
pub fn seen_ns(launch: u64, kernels: &[u64]) -> u64 {
    up(launch + SUBMIT) + kernels.iter().map(|length| up(length + GAP)).sum::<u64>() + VISIBLE
}
