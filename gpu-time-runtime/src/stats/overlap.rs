//! The GPU time during which work of several calls ran at once on one device. Each of the calls counts this
//! time, so the sum of their times exceeds the time that the GPU was busy.

use std::collections::BTreeMap;

use gpu_time_report as report;

/// The maximum number of intervals to keep. If there are more, the earliest is forgotten, and calls added later
/// can no longer be compared with it.
const MAX_KEPT: usize = 16_384;

/// The start and the end of some work on the GPU, in nanoseconds.
pub(crate) type GpuInterval = (u64, u64);

/// The overlap of the calls recorded so far on one device.
#[derive(Debug, Default)]
pub(crate) struct WorkOverlap {
    /// Disjoint intervals in which work ran: the end of each by its start.
    covered: BTreeMap<u64, u64>,
    /// Intervals that ended before this time may have been forgotten.
    forgotten_ns: u64,
    ns: u64,
    /// CUPTI's ids of the first context and stream on which work ran.
    stream: Option<(u32, u32)>,
    has_several_streams: bool,
    /// Some calls represent others, whose work is unknown, or have work that may overlap forgotten intervals.
    is_partial: bool,
}

/// The work of a call on one device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallWork {
    /// Disjoint intervals in which work ran, in order.
    pub intervals: Vec<GpuInterval>,
    /// CUPTI's ids of the contexts and streams.
    pub streams: Vec<(u32, u32)>,
}

impl WorkOverlap {
    /// Adds the work of one call. `is_sampled` means that the call also represents others.
    pub fn add(&mut self, call: &CallWork, is_sampled: bool) {
        self.is_partial |= is_sampled;
        for stream in &call.streams {
            self.has_several_streams |= *self.stream.get_or_insert(*stream) != *stream;
        }
        for interval in &call.intervals {
            self.is_partial |= interval.0 < self.forgotten_ns;
            self.add_interval(*interval);
            if self.covered.len() > MAX_KEPT
                && let Some((_, end)) = self.covered.pop_first()
            {
                self.forgotten_ns = end;
            }
        }
    }

    fn add_interval(&mut self, (mut start, mut end): GpuInterval) {
        if start >= end {
            return;
        }
        // The known intervals that begin before this one ends, the last one first.
        while let Some((&other_start, &other_end)) = self.covered.range(..end).next_back()
            && other_end > start
        {
            self.covered.remove(&other_start);
            self.ns += end.min(other_end) - start.max(other_start);
            (start, end) = (start.min(other_start), end.max(other_end));
        }
        self.covered.insert(start, end);
    }

    /// Returns the figures for the report. Returns `None` if certainly no work of two calls ran at once, for
    /// example because all work ran on a single stream.
    pub fn report(&self) -> Option<report::Overlap> {
        let partial = self.is_partial && self.has_several_streams;
        (self.ns > 0 || partial).then_some(report::value!(Overlap { ns: self.ns as f64, partial }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(stream: u32, intervals: &[GpuInterval]) -> CallWork {
        CallWork { intervals: intervals.to_vec(), streams: vec![(1, stream)] }
    }

    fn overlap(calls: &[&[GpuInterval]]) -> Option<(f64, bool)> {
        let mut overlap = WorkOverlap::default();
        calls.iter().for_each(|call| overlap.add(&on(1, call), false));
        overlap.report().map(|report| (report.ns, report.partial))
    }

    #[test]
    fn successive_calls_do_not_overlap() {
        assert_eq!(overlap(&[&[(10, 20), (30, 40)], &[(20, 30), (40, 41)]]), None);
        // An empty or reversed interval covers nothing.
        assert_eq!(overlap(&[&[(10, 20)], &[(15, 15), (18, 12)]]), None);
    }

    #[test]
    fn overlap_is_the_sum_less_the_union() {
        // 10 + 25 + 3 ns, while the GPU was busy for 31.
        assert_eq!(overlap(&[&[(10, 20)], &[(15, 40)], &[(38, 41)]]), Some((5.0 + 2.0, false)));
        // One interval over several, in any order.
        let calls: [&[GpuInterval]; 2] = [&[(0, 15), (40, 60)], &[(10, 50)]];
        assert_eq!(overlap(&calls), Some((15.0, false)));
        assert_eq!(overlap(&[calls[1], calls[0]]), Some((15.0, false)));
    }

    #[test]
    fn random_calls_agree_with_a_map_of_instants() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let (mut overlap, mut sum, mut is_busy) = (WorkOverlap::default(), 0, [false; 300]);
            for _ in 0..20 {
                let mut interval = |at: u64| {
                    let start = at * 50 + rng.u64(0..20);
                    (start, start + rng.u64(0..30))
                };
                let call: Vec<_> = (0..5).map(&mut interval).collect();
                for &(start, end) in &call {
                    sum += end - start;
                    (start..end).for_each(|at| is_busy[at as usize] = true);
                }
                overlap.add(&on(1, &call), false);
            }
            let union = is_busy.iter().filter(|busy| **busy).count() as u64;
            assert_eq!(overlap.ns, sum - union);
        }
    }

    #[test]
    fn sampled_calls_may_overlap_more_than_is_seen() {
        let mut overlap = WorkOverlap::default();
        overlap.add(&on(1, &[(10, 20)]), true);
        overlap.add(&on(1, &[(20, 30)]), true);
        // There is only one stream.
        assert_eq!(overlap.report(), None);
        overlap.add(&on(2, &[(30, 40)]), false);
        assert_eq!(overlap.report(), Some(report::value!(Overlap { ns: 0.0, partial: true })));
        overlap.add(&on(2, &[(15, 20)]), false);
        assert_eq!(overlap.report(), Some(report::value!(Overlap { ns: 5.0, partial: true })));
    }

    #[test]
    fn intervals_are_bounded() {
        let mut overlap = WorkOverlap::default();
        let long: Vec<_> = (0..2 * MAX_KEPT as u64).map(|at| (10 * at, 10 * at + 5)).collect();
        overlap.add(&on(1, &long), false);
        assert_eq!(overlap.covered.len(), MAX_KEPT);
        overlap.add(&on(2, &long[long.len() - 2..]), false);
        assert_eq!(overlap.report(), Some(report::value!(Overlap { ns: 10.0, partial: false })));
        overlap.add(&on(2, &long[..1]), false);
        assert_eq!(overlap.report(), Some(report::value!(Overlap { ns: 10.0, partial: true })));
    }
}
