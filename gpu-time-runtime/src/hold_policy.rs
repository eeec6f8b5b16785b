//! How long a site's holds may last, and when the site is better off without.

const SHORTEST_NS: u64 = 200_000;
const LONGEST_NS: u64 = 5_000_000;
/// Room for a call whose enqueueing takes longer than usual.
const MARGIN: u64 = 8;
const WINDOW: u32 = 16;
const TOO_MANY: u32 = 4;

/// What a site's recent holds taught.
///
/// Invariant: `outcomes` holds the last sixteen, one bit each, set where the deadline was hit.
#[derive(Debug)]
pub(crate) struct HoldPolicy {
    /// Usual host time from the hold to its release, or 0 before the first call.
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

impl HoldPolicy {
    pub const fn new() -> Self {
        HoldPolicy {
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

    /// Learns how many nanoseconds a bracket took to enqueue.
    pub fn enqueued_in(&mut self, ns: u64) {
        let ns = ns.clamp(1, LONGEST_NS);
        self.usual_ns = if self.usual_ns == 0 { ns } else { (self.usual_ns * 7 + ns).div_ceil(8) };
    }

    /// Learns how a hold ended.
    pub fn ended(&mut self, by_deadline: bool) {
        self.outcomes = self.outcomes << 1 | u16::from(by_deadline);
        self.off |= self.outcomes.count_ones() >= TOO_MANY;
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

const _: () = assert!(WINDOW == u16::BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_is_not_held_and_the_deadline_follows_the_usual_time() {
        let mut policy = HoldPolicy::new();
        assert_eq!(policy.deadline_ns(), None);
        policy.enqueued_in(10_000);
        assert_eq!(policy.deadline_ns(), Some(SHORTEST_NS));
        policy.enqueued_in(1_000_000);
        assert_eq!(policy.deadline_ns(), Some(133_750 * MARGIN));
        policy.enqueued_in(9_000_000_000);
        assert_eq!(policy.deadline_ns(), Some(LONGEST_NS));
    }

    #[test]
    fn four_deadlines_in_sixteen_switch_a_site_off() {
        let mut policy = HoldPolicy::new();
        policy.enqueued_in(10_000);
        for _ in 0..3 {
            policy.ended(true);
            for _ in 0..5 {
                policy.ended(false);
            }
        }
        assert!(!policy.is_off());
        policy.ended(true);
        assert!(!policy.is_off(), "the first of the four has left the window");
        policy.ended(true);
        assert!(policy.is_off());
        assert_eq!(policy.deadline_ns(), None);
        assert_eq!(policy.counts(), HoldCounts { released: 15, expired: 5 });
    }
}
