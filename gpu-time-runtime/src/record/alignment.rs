//! The alignment of CUPTI's clock with the host's monotonic clock.

use crate::{cuda, cupti};

/// The number of readings to take. The one with the smallest error is used.
const READINGS: usize = 8;

/// The offset between CUPTI's clock and the host's monotonic clock.
///
/// CUPTI's clock is the host's realtime clock. Both clocks run at the same rate, and the offset
/// changes only when the realtime clock is set.
///
/// Invariant: the offset is known to within `error_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Added to a time of CUPTI's clock to get the host time.
    offset_ns: i64,
    pub error_ns: u64,
}

impl Alignment {
    /// Reads both clocks. Returns the reading with the smallest error, or `kept` if its error is
    /// smaller and it still holds.
    pub fn read(kept: Option<Alignment>) -> Alignment {
        let mut read = Alignment::read_once();
        for _ in 1..READINGS {
            read = read.tighter(Alignment::read_once());
        }
        read.or_kept(kept)
    }

    fn read_once() -> Alignment {
        let before_ns = cuda::now_ns();
        let cupti_ns = cupti::now_ns();
        Alignment::between(before_ns, cupti_ns, cuda::now_ns())
    }

    /// Computes the alignment from a reading of CUPTI's clock between two readings of the host
    /// clock.
    fn between(before_ns: u64, cupti_ns: u64, after_ns: u64) -> Alignment {
        let error_ns = after_ns.saturating_sub(before_ns).div_ceil(2);
        let host_ns = before_ns.saturating_add(error_ns);
        Alignment { offset_ns: host_ns.wrapping_sub(cupti_ns) as i64, error_ns }
    }

    fn tighter(self, other: Alignment) -> Alignment {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// Returns the tighter of the two, or `self` if they contradict each other because a clock was
    /// set.
    fn or_kept(self, kept: Option<Alignment>) -> Alignment {
        let agrees = |kept: &Alignment| {
            self.offset_ns.abs_diff(kept.offset_ns) <= self.error_ns.saturating_add(kept.error_ns)
        };
        kept.filter(agrees).map_or(self, |kept| kept.tighter(self))
    }

    /// Converts a time of the host's clock to CUPTI's.
    pub fn cupti_ns(&self, host_ns: u64) -> u64 {
        host_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// Converts a time of CUPTI's clock to the host's.
    pub fn host_ns(&self, cupti_ns: u64) -> u64 {
        cupti_ns.saturating_add_signed(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_NS: u64 = 1_790_000_000_000_000_000;

    #[test]
    fn time_is_placed_within_the_error() {
        for (before, after) in [(1_000, 1_000), (1_000, 1_001), (1_000, 1_140)] {
            for read in before..=after {
                let alignment = Alignment::between(before, EPOCH_NS + read, after);
                assert_eq!(alignment.error_ns, (after - before).div_ceil(2));
                let host_ns = alignment.host_ns(EPOCH_NS + 5_000_000);
                assert!(host_ns.abs_diff(5_000_000) <= alignment.error_ns, "{before} {after}");
            }
        }
    }

    #[test]
    fn clock_behind_the_host_is_placed() {
        let alignment = Alignment::between(5_000, 1_000, 5_000);
        assert_eq!(alignment.host_ns(1_500), 5_500);
    }

    #[test]
    fn tightest_reading_is_kept() {
        let loose = Alignment::between(100, EPOCH_NS + 130, 180);
        let tight = Alignment::between(200, EPOCH_NS + 202, 204);
        assert_eq!(tight.or_kept(Some(loose)), tight);
        assert_eq!(loose.or_kept(Some(tight)), tight);
        assert_eq!(loose.or_kept(None), loose);
    }

    #[test]
    fn set_clock_replaces_a_tighter_reading() {
        let before = Alignment::between(100, EPOCH_NS + 101, 102);
        let after = Alignment::between(200, EPOCH_NS + 1_000_000, 280);
        assert_eq!(after.or_kept(Some(before)), after);
    }

    #[test]
    fn host_clock_stepping_back_does_not_overflow() {
        assert_eq!(Alignment::between(100, EPOCH_NS, 50).error_ns, 0);
    }
}
