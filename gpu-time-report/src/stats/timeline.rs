//! Timelines: times over the run of a program.

use serde::{Deserialize, Serialize};

/// The times of a series over the run of the program, in at most 128 slots of equal width.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The start of the first slot, in nanoseconds since the process's
    /// [start](crate::Process::started).
    pub origin_ns: u64,
    /// The width of a slot in nanoseconds.
    pub width_ns: u64,
    /// The slots that have times, in order.
    pub slots: Vec<Slot>,
}

/// A slot with times. In JSON, a list of these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64, u64, u64, u64)", into = "(u32, u64, u64, u64, u64)")]
#[non_exhaustive]
pub struct Slot {
    /// The number of slots between the origin and this one.
    pub index: u32,
    /// The number of times in the slot.
    pub count: u64,
    /// The shortest time, in whole nanoseconds like the following two.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest time.
    pub max_ns: u64,
}

impl From<(u32, u64, u64, u64, u64)> for Slot {
    fn from((index, count, min_ns, mean_ns, max_ns): (u32, u64, u64, u64, u64)) -> Slot {
        Slot { index, count, min_ns, mean_ns, max_ns }
    }
}

impl From<Slot> for (u32, u64, u64, u64, u64) {
    fn from(slot: Slot) -> Self {
        (slot.index, slot.count, slot.min_ns, slot.mean_ns, slot.max_ns)
    }
}
