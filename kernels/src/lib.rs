//! The CUDA kernels of [gpu-time](https://docs.rs/gpu-time), as PTX. They flush the L2 before a
//! cold measurement, verify the flush, hold a stream until a measurement has been enqueued, and
//! calibrate event times.
//!
//! The PTX loads with driver 525 or later on GPUs of compute capability 7.0 or later; [`DISCARD`]
//! requires 8.0.
//!
//! This package makes no driver calls. It contains the PTX, the names of the kernels, and the
//! documentation that a caller needs to launch them. Parameters are listed in order; a pointer is a
//! 64-bit device address.

use std::ffi::CStr;

#[cfg(test)]
mod tests;
#[cfg(feature = "workloads")]
pub mod workloads;

/// The module with [`FLUSH_READ`], [`HOLD`], [`LINE_LATENCIES`] and [`EMPTY`]. NUL-terminated as
/// `cuModuleLoadData` requires, so that loading it needs no allocation.
pub const PTX: &CStr = terminated(concat!(include_str!("../ptx/gpu_time.ptx"), "\0"));

/// The module with [`DISCARD`], for GPUs of compute capability 8.0 or later. NUL-terminated like
/// [`PTX`].
pub const PTX_SM_80: &CStr = terminated(concat!(include_str!("../ptx/gpu_time_sm_80.ptx"), "\0"));

/// Flushes the L2 by reading a buffer, which leaves the L2 full of clean lines.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*const uint4` | 16-byte aligned, **all zero** |
/// | `n16` | `u64` | length of `buf` in units of 16 bytes |
/// | `sink` | `*mut u32` | one word, written only if `buf` contains a value other than zero |
///
/// The kernel runs at memory bandwidth if the grid fills the GPU exactly once: [`flush_read_grid`]
/// blocks of [`FLUSH_READ_BLOCK`] threads. Any other geometry is correct but slower. A buffer that
/// is not all zero also flushes the L2, but leaves the line of `sink` dirty.
pub const FLUSH_READ: &CStr = c"gpu_time_flush_read";

/// Threads per block of [`FLUSH_READ`]. Divides the number of threads per SM of every GPU: 1,024,
/// 1,536 or 2,048.
pub const FLUSH_READ_BLOCK: u32 = 256;

/// Returns the number of blocks of [`FLUSH_READ`] that fill a GPU exactly once, given its
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT` and
/// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR`.
pub const fn flush_read_grid(multiprocessors: u32, max_threads_per_multiprocessor: u32) -> u32 {
    multiprocessors * (max_threads_per_multiprocessor / FLUSH_READ_BLOCK)
}

/// Discards lines from the L2 without writing them back. Launched after a kernel or memset that
/// wrote the lines, it leaves an L2 that contains neither them nor the lines that they evicted.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*mut u8` | aligned to [`DISCARDED_LINE`] |
/// | `lines` | `u64` | number of lines of [`DISCARDED_LINE`] bytes |
///
/// The content of the lines is indeterminate until they are written again. Use the same geometry as
/// for [`FLUSH_READ`].
pub const DISCARD: &CStr = c"gpu_time_discard";

/// Bytes per line that [`DISCARD`] discards.
pub const DISCARDED_LINE: u64 = 128;

/// Holds a stream until the host releases it or a time limit passes. One block of one thread.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `released` | `*const u64` | the highest ticket released so far, in mapped host memory |
/// | `ticket` | `u64` | this hold's ticket: the hold ends once `*released >= ticket` |
/// | `max_ns` | `u64` | limit in nanoseconds of `%globaltimer` |
/// | `max_cycles` | `u64` | limit in cycles of the SM's clock, see [`hold_max_cycles`] |
/// | `expired` | `*mut u64` | set to `ticket` if a limit ended the hold, in mapped host memory |
///
/// Tickets increase from one hold of a stream to the next. The host stores them with release
/// ordering. Each stream needs its own pair of words. `expired` is final once anything enqueued
/// after the hold has completed. For a hold of fixed duration, use a ticket that is never released,
/// such as [`u64::MAX`].
pub const HOLD: &CStr = c"gpu_time_hold";

/// Returns a limit in cycles that no GPU with an advancing timer reaches before `max_ns`, because
/// no SM runs at 4 GHz. If the timer does not advance, this limit ends the hold. The hold then
/// lasts longer than `max_ns`, by the ratio of 4 GHz to the SM clock.
pub const fn hold_max_cycles(max_ns: u64) -> u64 {
    max_ns.saturating_mul(4)
}

/// Times two reads of each of several lines, to determine which lines are in the L2: a hit is
/// faster than a miss, and the second read is always a hit. One block of [`LINE_LATENCIES_BLOCK`]
/// threads.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*const u32` | `lines` times [`LINE_STEP`] bytes with any content |
/// | `lines` | `u32` | a power of two, at most [`MAX_LINES`]; or 0, which reads nothing |
/// | `cycles` | `*mut u32` | `2 * lines` words, in cycles of the SM's clock: the durations of the first reads of each line, in the order of the reads, then the durations of the second reads |
/// | `done` | `*mut u64` | set to `ticket` once `cycles` is complete, visible to the host |
/// | `ticket` | `u64` | the value for `done` |
///
/// The lines start at multiples of [`LINE_STEP`]. The kernel also reads bytes between the lines at
/// both ends of `buf`, untimed, so that no timed read waits for an address translation if `buf`
/// spans at most two pages.
pub const LINE_LATENCIES: &CStr = c"gpu_time_line_latencies";

/// Threads per block of [`LINE_LATENCIES`].
pub const LINE_LATENCIES_BLOCK: u32 = 128;

/// The distance in bytes between the lines of [`LINE_LATENCIES`]: more than any GPU fetches at
/// once.
pub const LINE_STEP: u64 = 1_024;

/// The largest number of lines for [`LINE_LATENCIES`].
pub const MAX_LINES: u32 = 2_048;

/// Does nothing. Used for calibration: the time between two events around it shows the bias that a
/// pair adds to every measurement. No parameters, one block of one thread.
pub const EMPTY: &CStr = c"gpu_time_empty";

const fn terminated(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the PTX contains a NUL"),
    }
}
