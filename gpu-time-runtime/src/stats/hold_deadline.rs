//! Deadlines for a site's holds.

use crate::stats::since::impl_since;

const SHORTEST_NS: u64 = 200_000;
const LONGEST_NS: u64 = 5_000_000;
/// The deadline, as a multiple of the usual time to enqueue a bracket.
const MARGIN: u64 = 8;
/// The number of expired holds, among the last sixteen, at which holds are switched off for a site.
const TOO_MANY: u32 = 4;

/// The deadline for a site's holds, adapted to recent ones.
///
/// Invariant: `outcomes` has one bit for each of the last sixteen holds. A set bit means that the
/// hold expired.
#[derive(Debug)]
pub(crate) struct HoldDeadline {
    /// The usual host time to enqueue a bracket, as a moving average. 0 before the first call.
    usual_ns: u64,
    outcomes: u16,
    off: bool,
    counts: HoldCounts,
}

/// The numbers of holds of measured brackets, by the way they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HoldCounts {
    pub released: u64,
    pub expired: u64,
}

impl_since!(HoldCounts { released, expired });

impl HoldDeadline {
    pub const fn new() -> Self {
        HoldDeadline {
            usual_ns: 0,
            outcomes: 0,
            off: false,
            counts: HoldCounts { released: 0, expired: 0 },
        }
    }

    /// Returns the deadline for the next hold in nanoseconds. Returns `None` if the stream should
    /// not be held: on the first call, which may load modules or allocate, and after too many holds
    /// have expired.
    pub fn deadline_ns(&self) -> Option<u64> {
        if self.off || self.usual_ns == 0 {
            return None;
        }
        Some((self.usual_ns * MARGIN).clamp(SHORTEST_NS, LONGEST_NS))
    }

    /// Adapts to a bracket that took `in_ns` to enqueue, and to the way its hold ended, if it had
    /// one. If the hold expired, the function may have waited for the deadline, so the time is
    /// ignored.
    pub fn enqueued(&mut self, in_ns: u64, by_deadline: Option<bool>) {
        if let Some(by_deadline) = by_deadline {
            self.outcomes = self.outcomes << 1 | u16::from(by_deadline);
            self.off |= self.outcomes.count_ones() >= TOO_MANY;
        }
        if by_deadline != Some(true) {
            let ns = in_ns.clamp(1, LONGEST_NS);
            self.usual_ns =
                if self.usual_ns == 0 { ns } else { (self.usual_ns * 7 + ns).div_ceil(8) };
        }
    }

    /// Counts the hold of a measured bracket.
    pub fn count(&mut self, by_deadline: bool) {
        let HoldCounts { released, expired } = &mut self.counts;
        *if by_deadline { expired } else { released } += 1;
    }

    /// Returns the hold counts for all measured brackets.
    pub fn counts(&self) -> HoldCounts {
        self.counts
    }

    /// Returns `true` if holds were switched off because too many expired.
    pub fn is_off(&self) -> bool {
        self.off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_follows_usual_time_after_first_call() {
        let mut deadline = HoldDeadline::new();
        assert_eq!(deadline.deadline_ns(), None);
        deadline.enqueued(10_000, None);
        assert_eq!(deadline.deadline_ns(), Some(SHORTEST_NS));
        deadline.enqueued(1_000_000, Some(false));
        assert_eq!(deadline.deadline_ns(), Some(133_750 * MARGIN));
        deadline.enqueued(1_100_000, Some(true));
        assert_eq!(deadline.deadline_ns(), Some(133_750 * MARGIN), "an expired hold is ignored");
        deadline.enqueued(9_000_000_000, Some(false));
        assert_eq!(deadline.deadline_ns(), Some(LONGEST_NS));
    }

    #[test]
    fn four_expired_holds_in_sixteen_switch_site_off() {
        let mut deadline = HoldDeadline::new();
        deadline.enqueued(10_000, None);
        for _ in 0..3 {
            deadline.enqueued(200_000, Some(true));
            for _ in 0..5 {
                deadline.enqueued(10_000, Some(false));
            }
        }
        assert!(!deadline.is_off());
        deadline.enqueued(200_000, Some(true));
        assert!(!deadline.is_off(), "the first of the four has left the window");
        deadline.enqueued(200_000, Some(true));
        assert!(deadline.is_off());
        assert_eq!(deadline.deadline_ns(), None);
    }

    #[test]
    fn holds_are_counted_by_end() {
        let mut deadline = HoldDeadline::new();
        for by_deadline in [true, false, false, true, false] {
            deadline.count(by_deadline);
        }
        assert_eq!(deadline.counts(), HoldCounts { released: 3, expired: 2 });
    }
}
