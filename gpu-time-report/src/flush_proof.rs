//! The measured effect of L2 flushes, which proves that cold calls find a cold cache.

use serde::{Deserialize, Serialize};

/// The fraction of the L2 that a flush of a given size evicted.
///
/// A line counts as missed if it took longer to read than nearly all lines known to be in the same
/// L2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Eviction {
    /// `true` if at least 99 % of the lines missed, both after reads and after writes, as well as
    /// half of the lines that the flush itself discarded.
    pub proved: bool,
    /// `"read"`, which leaves clean lines, `"write"`, which leaves dirty ones, or
    /// `"write-discard"`, which leaves none.
    pub method: String,
    /// The flush's size as a multiple of the L2 size reported by the driver.
    pub multiple: u32,
    /// The flush's size in bytes.
    pub bytes: u64,
    /// The number of cache lines whose latencies were measured.
    pub lines: u32,
    /// The fraction of lines, read before the flush, that missed after it. This is the smaller of
    /// the results for a full L2 and for one that had just been flushed.
    pub missed_after_read: f64,
    /// The fraction of lines, written before the flush, that missed after it. This is the smaller
    /// of the same two results.
    pub missed_after_write: f64,
    /// The fraction of lines, written and discarded by the flush itself, that missed after it,
    /// which shows that discarding works. `None` if the flush does not discard lines.
    pub missed_discarded: Option<f64>,
    /// The median hit latency, in cycles of the SM clock.
    pub hit_cycles: u32,
    /// The median latency of the lines that missed, in cycles of the SM clock.
    pub miss_cycles: Option<u32>,
    /// The latency above which a read counts as a miss, in cycles of the SM clock. Nearly all lines
    /// known to be in the L2 took less.
    pub threshold_cycles: u32,
}

/// The measured effects of the two kinds of flush on a device. An effect is `None` if that flush
/// was not prepared or could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FlushProof {
    /// The effect of the flush used by `cold`, which leaves no dirty lines.
    pub clean: Option<Eviction>,
    /// The effect of the flush used by `cold = "dirty"`, which writes.
    pub dirty: Option<Eviction>,
}
