//! What a flush was seen to evict: the proof that cold is cold.

use serde::{Deserialize, Serialize};

/// How much of the L2 a flush of some size was seen to evict.
///
/// A line missed if it took longer to read than nearly all lines that the same L2 was known to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    #[doc(hidden)]
    pub proved: bool,
    /// Empty in the first reports, whose flushes read to leave clean lines and wrote to leave dirty ones.
    #[doc(hidden)]
    #[serde(default)]
    pub method: String,
    #[doc(hidden)]
    pub multiple: u32,
    #[doc(hidden)]
    pub bytes: u64,
    #[doc(hidden)]
    pub lines: u32,
    #[doc(hidden)]
    pub missed_after_read: f64,
    #[doc(hidden)]
    pub missed_after_write: f64,
    #[doc(hidden)]
    pub missed_discarded: Option<f64>,
    #[doc(hidden)]
    pub hit_cycles: u32,
    #[doc(hidden)]
    pub miss_cycles: Option<u32>,
    #[doc(hidden)]
    pub threshold_cycles: u32,
}

/// What was seen of the two kinds of flush on a device, each `None` if it was not prepared or nothing
/// could be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlushProof {
    #[doc(hidden)]
    pub clean: Option<Eviction>,
    #[doc(hidden)]
    pub dirty: Option<Eviction>,
}

impl Eviction {
    /// Whether at least 99 % of the lines missed, after reads and after writes, and half of those
    /// that the flush itself discarded.
    pub fn proved(&self) -> bool {
        self.proved
    }

    /// `"read"`, which leaves clean lines, `"write"`, which leaves dirty ones, or `"write-discard"`, which
    /// leaves none.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The flush's size as a multiple of the L2 that the driver reports.
    pub fn multiple(&self) -> u32 {
        self.multiple
    }

    /// The flush's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many lines were watched.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// The share of lines, read before the flush, that missed after it: in an L2 that was full or in one that
    /// had just been flushed, whichever is less.
    pub fn missed_after_read(&self) -> f64 {
        self.missed_after_read
    }

    /// The share of lines, written before the flush, that missed after it, in the same way.
    pub fn missed_after_write(&self) -> f64 {
        self.missed_after_write
    }

    /// The share of lines, written and discarded by the flush itself, that missed after it: that
    /// shows that discarding has an effect. `None` where the flush discards nothing.
    pub fn missed_discarded(&self) -> Option<f64> {
        self.missed_discarded
    }

    /// Median latency of a hit, in cycles of the SM's clock.
    pub fn hit_cycles(&self) -> u32 {
        self.hit_cycles
    }

    /// Median latency of the lines that missed, in the same cycles.
    pub fn miss_cycles(&self) -> Option<u32> {
        self.miss_cycles
    }

    /// What takes longer than this is a miss, in the same cycles: nearly all lines known to be in the
    /// L2 took less.
    pub fn threshold_cycles(&self) -> u32 {
        self.threshold_cycles
    }
}

impl FlushProof {
    /// Of `cold`, which leaves nothing dirty.
    pub fn clean(&self) -> Option<&Eviction> {
        self.clean.as_ref()
    }

    /// Of `cold = "dirty"`, which writes.
    pub fn dirty(&self) -> Option<&Eviction> {
        self.dirty.as_ref()
    }
}
