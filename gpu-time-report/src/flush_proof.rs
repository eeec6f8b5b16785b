//! The measured effect of L2 flushes, which proves that cold calls find a cold cache.

use serde::{Deserialize, Serialize};

/// The fraction of the L2 that a flush of a given size evicted.
///
/// A line counts as missed if it took longer to read than nearly all lines known to be in the same
/// L2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    #[doc(hidden)]
    pub proved: bool,
    /// Empty in reports that were written before this field was added. Clean flushes then used the method `read`, and
    /// dirty flushes `write`.
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

/// The measured effects of the two kinds of flush on a device. An effect is `None` if that flush
/// was not prepared or could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlushProof {
    #[doc(hidden)]
    pub clean: Option<Eviction>,
    #[doc(hidden)]
    pub dirty: Option<Eviction>,
}

impl Eviction {
    /// Returns `true` if at least 99 % of the lines missed, both after reads and after writes, as
    /// well as half of the lines that the flush itself discarded.
    pub fn proved(&self) -> bool {
        self.proved
    }

    /// Returns `"read"`, which leaves clean lines, `"write"`, which leaves dirty ones, or
    /// `"write-discard"`, which leaves none.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the flush's size as a multiple of the L2 size reported by the driver.
    pub fn multiple(&self) -> u32 {
        self.multiple
    }

    /// Returns the flush's size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of cache lines whose latencies were measured.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Returns the fraction of lines, read before the flush, that missed after it. This is the
    /// smaller of the results for a full L2 and for one that had just been flushed.
    pub fn missed_after_read(&self) -> f64 {
        self.missed_after_read
    }

    /// Returns the fraction of lines, written before the flush, that missed after it. This is the
    /// smaller of the same two results.
    pub fn missed_after_write(&self) -> f64 {
        self.missed_after_write
    }

    /// Returns the fraction of lines, written and discarded by the flush itself, that missed after
    /// it, which shows that discarding works. `None` if the flush does not discard lines.
    pub fn missed_discarded(&self) -> Option<f64> {
        self.missed_discarded
    }

    /// Returns the median hit latency, in cycles of the SM clock.
    pub fn hit_cycles(&self) -> u32 {
        self.hit_cycles
    }

    /// Returns the median latency of the lines that missed, in cycles of the SM clock.
    pub fn miss_cycles(&self) -> Option<u32> {
        self.miss_cycles
    }

    /// Returns the latency above which a read counts as a miss, in cycles of the SM clock. Nearly
    /// all lines known to be in the L2 took less.
    pub fn threshold_cycles(&self) -> u32 {
        self.threshold_cycles
    }
}

impl FlushProof {
    /// Returns the effect of the flush used by `cold`, which leaves no dirty lines.
    pub fn clean(&self) -> Option<&Eviction> {
        self.clean.as_ref()
    }

    /// Returns the effect of the flush used by `cold = "dirty"`, which writes.
    pub fn dirty(&self) -> Option<&Eviction> {
        self.dirty.as_ref()
    }
}
