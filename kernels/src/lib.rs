//! The CUDA kernels of [gpu-time](https://docs.rs/gpu-time), as PTX that any GPU of compute
//! capability 7.0 or later, and for one kernel 8.0, loads with driver 525 or later: what evicts the L2 before a cold
//! measurement and what shows that it did, what holds a stream until a measurement has been enqueued,
//! and what calibrates.
//!
//! This package makes no driver call. It holds the text, the names in it, and what a caller must
//! know in order to launch them. Parameters are listed in their order; a pointer is a device
//! address of 64 bits.

use std::ffi::CStr;

#[cfg(test)]
mod tests;
#[cfg(feature = "workloads")]
pub mod workloads;

/// The module with [`FLUSH_READ`], [`HOLD`], [`LINE_LATENCIES`] and [`EMPTY`], terminated as
/// `cuModuleLoadData` wants it, so that loading it allocates nothing on our side.
pub const PTX: &CStr = terminated(concat!(include_str!("../ptx/gpu_time.ptx"), "\0"));

/// The module with [`DISCARD`], which a GPU of compute capability 8.0 or later loads; terminated like
/// [`PTX`].
pub const PTX_SM_80: &CStr = terminated(concat!(include_str!("../ptx/gpu_time_sm_80.ptx"), "\0"));

/// Evicts the L2 by reading a buffer, and leaves it full of clean lines.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*const uint4` | 16-byte aligned, **all zero** |
/// | `n16` | `u64` | length of `buf` in units of 16 bytes |
/// | `sink` | `*mut u32` | one word, written only if `buf` holds something else than zero |
///
/// The kernel's cost is its traffic if the grid fills the GPU exactly once: blocks of
/// [`FLUSH_READ_BLOCK`] threads, [`flush_read_grid`] of them. Any other geometry is right too, and
/// slower. A buffer that is not all zero is evicted as well, but leaves the sink's line dirty.
pub const FLUSH_READ: &CStr = c"gpu_time_flush_read";

/// Threads in a block of [`FLUSH_READ`]. It divides what an SM holds on every part: 1,024, 1,536 or
/// 2,048 threads.
pub const FLUSH_READ_BLOCK: u32 = 256;

/// Blocks of [`FLUSH_READ`] that fill a GPU exactly once, from its
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT` and
/// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR`.
pub const fn flush_read_grid(multiprocessors: u32, max_threads_per_multiprocessor: u32) -> u32 {
    multiprocessors * (max_threads_per_multiprocessor / FLUSH_READ_BLOCK)
}

/// Takes lines out of the L2 without writing them back. Behind what wrote them, it leaves an L2 that holds
/// neither them nor what they displaced.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*mut u8` | aligned to [`DISCARDED_LINE`] |
/// | `lines` | `u64` | how many lines of [`DISCARDED_LINE`] bytes |
///
/// What the lines hold afterwards is indeterminate until they are written again. The geometry is that of
/// [`FLUSH_READ`].
pub const DISCARD: &CStr = c"gpu_time_discard";

/// Bytes that [`DISCARD`] takes out at once.
pub const DISCARDED_LINE: u64 = 128;

/// Holds a stream until the host releases it, or a bound passes. One block of one thread.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `released` | `*const u64` | the highest ticket released so far, in mapped host memory |
/// | `ticket` | `u64` | this hold's ticket: it ends once `*released >= ticket` |
/// | `max_ns` | `u64` | bound in nanoseconds of `%globaltimer` |
/// | `max_cycles` | `u64` | bound in cycles of the SM's clock; see [`hold_max_cycles`] |
/// | `expired` | `*mut u64` | receives `ticket` if a bound ended the hold, in mapped host memory |
///
/// Tickets rise from one hold of a stream to the next, and the host stores them with release order.
/// Both words belong to one stream: holds of two streams need two pairs. `expired` is final once
/// anything enqueued after the hold has completed. A hold for a fixed time is one whose ticket is
/// never released, such as [`u64::MAX`].
pub const HOLD: &CStr = c"gpu_time_hold";

/// A bound in cycles that lets `max_ns` pass first on any GPU whose timer moves: no SM runs at
/// 4 GHz. Where the timer stands still the hold ends on this bound, later by as much as the clock is
/// below that.
pub const fn hold_max_cycles(max_ns: u64) -> u64 {
    max_ns.saturating_mul(4)
}

/// Times reads of single lines, each twice: a line that the L2 holds answers sooner than one that it
/// does not, and the second read is always of a line that it holds. One block of
/// [`LINE_LATENCIES_BLOCK`] threads.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `buf` | `*const u32` | `lines` times [`LINE_STEP`] bytes, whatever they hold |
/// | `lines` | `u32` | a power of two, at most [`MAX_LINES`]; or 0, which reads nothing |
/// | `cycles` | `*mut u32` | `2 lines` words: cycles of the SM's clock that the first read of each line took, in the order of the reads, then the same of the second ones |
/// | `done` | `*mut u64` | receives `ticket` when `cycles` is complete, to be seen by the host too |
/// | `ticket` | `u64` | what to store there |
///
/// The lines begin at multiples of [`LINE_STEP`]. Between them other bytes of `buf` are read, at its
/// two ends, so that no timed read waits for the translation of its address if `buf` lies on one page
/// or two.
pub const LINE_LATENCIES: &CStr = c"gpu_time_line_latencies";

/// Threads of [`LINE_LATENCIES`].
pub const LINE_LATENCIES_BLOCK: u32 = 128;

/// Bytes from one line that [`LINE_LATENCIES`] times to the next: more than any part fetches at once.
pub const LINE_STEP: u64 = 1_024;

/// So many lines [`LINE_LATENCIES`] times at most.
pub const MAX_LINES: u32 = 2_048;

/// Does nothing and takes no parameters: what a pair of events reads around it is the pair's own
/// share in every measurement. One block of one thread.
pub const EMPTY: &CStr = c"gpu_time_empty";

const fn terminated(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the PTX holds a NUL before its end"),
    }
}
