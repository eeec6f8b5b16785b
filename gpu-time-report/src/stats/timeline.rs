//! How times changed while a program ran.

use serde::{Deserialize, Serialize};

/// How the times of a series changed while the program ran: at most 128 slots of equal width.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    #[doc(hidden)]
    pub origin_ns: u64,
    #[doc(hidden)]
    pub width_ns: u64,
    #[doc(hidden)]
    pub slots: Vec<Slot>,
}

/// A slot that has times: its place, how many there are, and the least, the mean and the greatest, in
/// whole nanoseconds. In JSON, a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot(pub(super) u32, pub(super) u64, pub(super) u64, pub(super) u64, pub(super) u64);

impl Timeline {
    /// Where the first slot begins, in nanoseconds since the process's [start](crate::Process::started).
    pub fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// The width of a slot in nanoseconds.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// The slots that have times, in their order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

impl Slot {
    /// How many widths lie between the origin and its begin.
    pub fn index(&self) -> u32 {
        self.0
    }

    /// How many times it has.
    pub fn count(&self) -> u64 {
        self.1
    }

    /// The shortest of its times.
    pub fn min_ns(&self) -> u64 {
        self.2
    }

    /// Their mean.
    pub fn mean_ns(&self) -> u64 {
        self.3
    }

    /// The longest of them.
    pub fn max_ns(&self) -> u64 {
        self.4
    }
}
