//! How long a site's holds may last, and when the site is better off without.

use crate::stats::since::impl_since;

const SHORTEST_NS: u64 = 200_000;
const LONGEST_NS: u64 = 5_000_000;
/// Room for a call whose enqueueing takes longer than usual.
const MARGIN: u64 = 8;
const TOO_MANY: u32 = 4;

/// What a site's recent holds taught.
///
/// Invariant: `outcomes` holds the last sixteen, one bit each, set where the deadline was hit.
#[derive(Debug)]
pub(crate) struct HoldDeadline {
    /// Usual host time to enqueue a bracket, or 0 before the first call.
    usual_ns: u64,
    outcomes: u16,
    off: bool,
    counts: HoldCounts,
}

/// How the holds of a site ended whose brackets were measured.
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

    /// The deadline of the next hold in nanoseconds, or `None` where the site should not be held:
    /// on its first call, which may load modules or allocate, and after too many deadlines.
    pub fn deadline_ns(&self) -> Option<u64> {
        if self.off || self.usual_ns == 0 {
            return None;
        }
        Some((self.usual_ns * MARGIN).clamp(SHORTEST_NS, LONGEST_NS))
    }

    /// Learns from a bracket that was enqueued in so many nanoseconds, and from its hold, if it had one: of one
    /// that ended by its deadline the function may have waited for that, and the time says nothing.
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

    /// Counts how the hold of a measured bracket ended.
    pub fn count(&mut self, by_deadline: bool) {
        let HoldCounts { released, expired } = &mut self.counts;
        *if by_deadline { expired } else { released } += 1;
    }

    /// How all of them ended.
    pub fn counts(&self) -> HoldCounts {
        self.counts
    }

    /// Whether too many deadlines switched the site's holds off.
    pub fn is_off(&self) -> bool {
        self.off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_is_not_held_and_the_deadline_follows_the_usual_time() {
        let mut policy = HoldDeadline::new();
        assert_eq!(policy.deadline_ns(), None);
        policy.enqueued(10_000, None);
        assert_eq!(policy.deadline_ns(), Some(SHORTEST_NS));
        policy.enqueued(1_000_000, Some(false));
        assert_eq!(policy.deadline_ns(), Some(133_750 * MARGIN));
        policy.enqueued(1_100_000, Some(true));
        assert_eq!(policy.deadline_ns(), Some(133_750 * MARGIN), "it waited for the deadline");
        policy.enqueued(9_000_000_000, Some(false));
        assert_eq!(policy.deadline_ns(), Some(LONGEST_NS));
    }

    #[test]
    fn four_deadlines_in_sixteen_switch_a_site_off() {
        let mut policy = HoldDeadline::new();
        policy.enqueued(10_000, None);
        for _ in 0..3 {
            policy.enqueued(200_000, Some(true));
            for _ in 0..5 {
                policy.enqueued(10_000, Some(false));
            }
        }
        assert!(!policy.is_off());
        policy.enqueued(200_000, Some(true));
        assert!(!policy.is_off(), "the first of the four has left the window");
        policy.enqueued(200_000, Some(true));
        assert!(policy.is_off());
        assert_eq!(policy.deadline_ns(), None);
    }

    #[test]
    fn the_holds_of_measured_brackets_are_counted() {
        let mut policy = HoldDeadline::new();
        for by_deadline in [true, false, false, true, false] {
            policy.count(by_deadline);
        }
        assert_eq!(policy.counts(), HoldCounts { released: 3, expired: 2 });
    }
}
