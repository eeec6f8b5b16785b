//! Timelines: times over the run of a program.

use serde::{Deserialize, Serialize};

/// The times of a series over the run of the program, in at most 128 slots of equal width.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    #[doc(hidden)]
    pub origin_ns: u64,
    #[doc(hidden)]
    pub width_ns: u64,
    #[doc(hidden)]
    pub slots: Vec<Slot>,
}

/// A slot with times: its index, the number of times, and the shortest, the mean and the longest
/// time, in whole nanoseconds. In JSON, a list of these values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot(pub(super) u32, pub(super) u64, pub(super) u64, pub(super) u64, pub(super) u64);

impl Timeline {
    /// Returns the start of the first slot, in nanoseconds since the process's
    /// [start](crate::Process::started).
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Returns the width of a slot in nanoseconds.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns the slots that have times, in order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

impl Slot {
    /// Returns the number of slots between the origin and this one.
    pub fn index(&self) -> u32 {
        self.0
    }

    /// Returns the number of times in the slot.
    pub fn count(&self) -> u64 {
        self.1
    }

    /// Returns the shortest time.
    pub fn min_ns(&self) -> u64 {
        self.2
    }

    /// Returns the mean.
    pub fn mean_ns(&self) -> u64 {
        self.3
    }

    /// Returns the longest time.
    pub fn max_ns(&self) -> u64 {
        self.4
    }
}
