//! The device time that timing costs, for the budget.

use crate::cuda::Context;
use crate::gpu::Preparation;
use crate::types::attribute::Cold;

/// The time of two records beyond that of an empty pair. Back-to-back empty kernels on an H200 took
/// 1.40 µs each, and 4.74 µs with a pair around each.
const RECORDS_NS: f64 = 2_060.0;
/// The time of an empty pair where it is not known, on the same device.
const EMPTY_PAIR_NS: f64 = 1_280.0;
/// The time of a hold beyond the time for which it is needed: its launch, as that of an empty
/// kernel, and the microsecond or two until the device sees the release.
const HOLD_NS: f64 = 3_000.0;
/// The fixed time of a flush: on the same device 2.4 µs for one that reads the L2 once, and 3.3 µs
/// for one that writes and discards it.
const FLUSH_NS: f64 = 3_000.0;
/// The share of the peak bandwidth that a flush reaches on that device.
const REACHED: f64 = 0.8;
/// The peak bandwidth where it is not known, in bytes per nanosecond: less than most devices have.
const UNKNOWN_PEAK: f64 = 200.0;

impl Context {
    /// Returns the device time of a bracket with its preparation, in nanoseconds. A hold takes the
    /// time that it lasts in addition.
    #[cold]
    pub fn cost_ns(&self, prepare: Preparation) -> f64 {
        let pair = self.known_floor().map_or(EMPTY_PAIR_NS, |floor| floor.pair_ns);
        // Assumes a long queue behind the pair, because that is not known yet.
        let pair = pair + self.queued_extra_ns();
        let flush = prepare.cold.map_or(0.0, |cold| self.flush_cost_ns(cold));
        pair + RECORDS_NS + flush + prepare.hold.map_or(0.0, |_| HOLD_NS)
    }

    /// Returns the device time of a flush, including what it makes later kernels do: they fill the
    /// L2 again, and write back what the flush left dirty.
    #[cold]
    pub fn flush_cost_ns(&self, cold: Cold) -> f64 {
        let l2 = match cold {
            Cold::Clean => self.device.l2_bytes,
            Cold::Dirty => 2 * self.device.l2_bytes,
        };
        let peak = self.device.peak_bandwidth.map_or(UNKNOWN_PEAK, |bytes| bytes as f64 / 1e9);
        FLUSH_NS + (self.flush_bytes().unwrap_or(0) + l2) as f64 / (REACHED * peak)
    }
}
