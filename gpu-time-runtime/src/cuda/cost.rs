//! Estimates of the device time that timing costs.

use crate::cuda::Context;
use crate::gpu::Preparation;
use crate::types::attribute::Cold;

/// The device time of two event records, in addition to the time that an empty pair measures. On an H200,
/// occasional pairs in a loop of 3 µs kernels that never synchronizes slowed the loop down by 4.2 to 4.3 µs
/// each. An empty pair measures 1.28 µs there, and about 0.6 µs more with a long queue behind it. Pairs
/// around each of many empty kernels cost less: 4.74 µs per kernel with a pair, 1.40 µs without.
const RECORDS_NS: f64 = 2_360.0;
/// The assumed time of an empty pair if it has not been measured.
const EMPTY_PAIR_NS: f64 = 1_280.0;
/// The cost of a hold in addition to its intended duration: about as much as an empty kernel, and
/// one or two microseconds until the device sees the release.
const HOLD_NS: f64 = 3_000.0;
/// The cost of a flush that evicts almost nothing: on an H200, 2.4 µs to read the L2 once, and 3.3
/// µs to write and discard it.
const FLUSH_NS: f64 = 3_000.0;
/// The fraction of peak bandwidth that a flush reaches on an H200.
const BANDWIDTH_SHARE: f64 = 0.8;
/// The assumed peak bandwidth if it is unknown, in bytes per nanosecond. Most devices have more.
const UNKNOWN_PEAK: f64 = 200.0;

impl Context {
    /// Returns the device time of one bracket's event pair, in nanoseconds.
    #[cold]
    pub fn pair_cost_ns(&self) -> f64 {
        let pair_ns = self.floor.known().map_or(EMPTY_PAIR_NS, |floor| floor.pair_ns);
        // Assumes a long queue behind the pair, because the queue's length is not known yet.
        pair_ns
            + self.calibration().and_then(|known| known.added_ns(0, true)).unwrap_or(0.0)
            + RECORDS_NS
    }

    /// Returns the device time of a bracket's preparation, in nanoseconds. A hold additionally
    /// costs its duration.
    #[cold]
    pub fn preparation_cost_ns(&self, prepare: Preparation) -> f64 {
        let flush_ns = prepare.cold.map_or(0.0, |cold| self.flush_cost_ns(cold));
        flush_ns + prepare.hold.map_or(0.0, |_| HOLD_NS)
    }

    /// Returns the device time of a flush, including the time that later kernels spend refilling
    /// the L2 and writing back dirty lines.
    #[cold]
    pub fn flush_cost_ns(&self, cold: Cold) -> f64 {
        let l2 = match cold {
            Cold::Clean => self.device.l2_bytes,
            Cold::Dirty => 2 * self.device.l2_bytes,
        };
        let peak = self.device.peak_bandwidth.map_or(UNKNOWN_PEAK, |bytes| bytes as f64 / 1e9);
        FLUSH_NS + (self.flushes.bytes().unwrap_or(0) + l2) as f64 / (BANDWIDTH_SHARE * peak)
    }
}
