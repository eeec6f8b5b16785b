//! Corrects the estimated calls of a function by their known number.

use crate::stats::call_tree::by_events::EventTimes;
use gpu_time_report::Node;

/// The relative difference of two numbers of calls that are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// The numbers of a function's calls in the tree.
#[derive(Clone, Copy, Default)]
pub(super) struct CallCounts {
    /// The calls that events timed.
    timed: f64,
    /// Some of these stand for others that were not timed.
    is_sampled: bool,
    /// The opened calls, the calls for which they stand, and the number of their paths.
    recorded: u64,
    opened: f64,
    opened_paths: u32,
}

/// What makes a function's calls in the tree add up to their known number.
#[derive(Clone, Copy)]
pub(super) struct Correction {
    pub scale: f64,
    /// The number of calls of a path is known, because the function has no other.
    pub is_count_known: bool,
    /// Calls were left out, perhaps of a path whose opened calls stand for no others: one of them may be the function's
    /// first, which is opened in any case.
    pub is_sampled: bool,
    /// The calls were sampled by count, and not at random.
    pub is_counted: bool,
}

impl CallCounts {
    pub fn add_opened(&mut self, recorded: u64, calls: f64) {
        self.recorded += recorded;
        self.opened += calls;
        self.opened_paths += 1;
    }

    pub fn add_timed(&mut self, times: &EventTimes) {
        self.timed += times.calls;
        self.is_sampled |= times.is_sampled();
    }

    /// Returns the correction of the opened calls.
    pub fn correction(self, known: Option<f64>) -> Correction {
        let known = known.filter(|_| !self.is_sampled);
        let ratio = known.map(|known| (known - self.timed) / self.opened);
        let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        // The weights of calls that all count once may have been rounded.
        let scale = ratio.filter(|ratio| (ratio - 1.0).abs() > ROUNDING).unwrap_or(1.0);
        Correction {
            scale,
            is_count_known: ratio.is_some() && self.opened_paths == 1,
            is_sampled: self.opened > self.recorded as f64 || scale != 1.0,
            is_counted: false,
        }
    }
}

impl Correction {
    pub fn applied(self, mut node: Node) -> Node {
        let errors = [&mut node.inclusive_error_ns, &mut node.self_error_ns];
        let errors = errors.into_iter().flatten();
        let totals = [&mut node.calls, &mut node.self_ns].into_iter();
        let totals = totals.chain(node.self_ns_by_device.values_mut()).chain(errors);
        totals.for_each(|total| *total *= self.scale);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_calls_stand_for_those_that_events_did_not_time() {
        let mut counts = CallCounts::default();
        [10.0, 6.0].into_iter().for_each(|calls| counts.add_opened(1, calls));
        let scale = |counts: CallCounts, known| counts.correction(known).scale;
        assert_eq!(
            [None, Some(0.0), Some(32.0)].map(|known| scale(counts, known)),
            [1.0, 1.0, 2.0]
        );
        assert_eq!(scale(counts, Some(16.0 + 1e-12)), 1.0);
        let timed = EventTimes { recorded: 8, calls: 8.0, ..EventTimes::default() };
        counts.add_timed(&timed);
        assert_eq!(scale(counts, Some(32.0)), 1.5);
        // The number of calls for which the timed ones stand is an estimate.
        counts.add_timed(&EventTimes { calls: 9.0, ..timed });
        assert_eq!(scale(counts, Some(32.0)), 1.0);
    }
}
