//! What timing takes of the device, beside the host's time.

use crate::cuda::Context;
use crate::gpu::Preparation;
use crate::types::attribute::Cold;

/// What two records take beside what an empty pair reads, and that where it is not known: back-to-back
/// empty kernels on an H200 took 1.40 µs each, and 4.74 µs with a pair around each.
const RECORDS_NS: f64 = 2_060.0;
const EMPTY_PAIR_NS: f64 = 1_280.0;
/// What a hold takes beside the time for which it was wanted: its launch, as that of an empty kernel, and
/// the microsecond or two until the device sees that it is released.
const HOLD_NS: f64 = 3_000.0;
/// What a flush takes however little it evicts: on the same device 2.4 µs by reading once the L2, and 3.3 µs
/// by writing and discarding it.
const FLUSH_NS: f64 = 3_000.0;
/// The share of the peak bandwidth that a flush reaches on that device.
const REACHED: f64 = 0.8;
/// Where the peak is not known, in bytes a nanosecond: less than most devices have.
const UNKNOWN_PEAK: f64 = 200.0;

impl Context {
    /// What a bracket takes of the device, with what precedes it, in nanoseconds; a hold takes as long as it
    /// lasts in addition.
    #[cold]
    pub fn cost_ns(&self, prepare: Preparation) -> f64 {
        let pair = self.known_floor().map_or(EMPTY_PAIR_NS, |floor| floor.pair_ns);
        // Whether much will be behind it is not known: as if it were.
        let pair = pair + self.queued_extra_ns();
        let flush = prepare.cold.map_or(0.0, |cold| self.flush_cost_ns(cold));
        pair + RECORDS_NS + flush + prepare.hold.map_or(0.0, |_| HOLD_NS)
    }

    /// What a flush takes, and what it makes the kernels after it do again: they fill the L2, and write
    /// back what it left dirty.
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
