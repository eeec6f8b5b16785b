//! Decides whether a bracket was fed: based on its hold, on the host time, or otherwise by aligning
//! the GPU clock with the host clock.
//!
//! A sample is fed if the GPU reached its start only after the host had enqueued its stop. It is
//! not enough that the start event is still pending at that moment, because the host sees the GPU's
//! progress a microsecond or two late. Therefore the two times are compared.

use crate::gpu::{Gpu, HoldResult};
use crate::stats::clock_fit::{ClockFit, Moment};
use crate::types::handles::{Event, EventPair};

/// The largest fraction of the measured time that the host may spend enqueueing a bracket without a
/// hold, for the sample to count as fed.
const HOST_SHARE: f64 = 0.01;

/// Evidence of whether the GPU waited for the host inside a bracket, as known when the stop is
/// enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeding {
    /// The stream was held until the host had enqueued the stop, unless the hold expired.
    Held(HoldResult),
    /// The stop was enqueued before a hold with a fixed duration can have ended.
    Certain,
    /// The host time from before the start record to after the stop record, in nanoseconds.
    Host(u64),
    /// No evidence: whether the bracket was fed depends on when the GPU reached the start.
    Unknown,
}

impl Feeding {
    /// Returns `true` if a bracket with this time was fed, or `None` if that depends on when the
    /// GPU reached its start, which a [`FeedDetector`] determines.
    #[inline]
    pub fn is_fed(self, raw_ns: f64, has_expired: impl FnOnce(HoldResult) -> bool) -> Option<bool> {
        match self {
            Feeding::Held(hold) => Some(!has_expired(hold)),
            Feeding::Certain => Some(true),
            Feeding::Host(ns) if ns as f64 <= raw_ns * HOST_SHARE => Some(true),
            Feeding::Host(_) | Feeding::Unknown => None,
        }
    }
}

/// Finds out when the GPU reached the brackets of one stream.
///
/// A position behind another bracket proves nothing: the driver gives the handle of a destroyed stream to a new
/// one while the old stream's work still runs. On an H200 it did so every time.
pub(crate) struct FeedDetector {
    fit: Option<ClockFit>,
    /// The first start event located in time for a trace, and its time since the anchor.
    first: Option<(Event, f64)>,
    /// The earliest host time at which the GPU can have passed the stop of the last bracket.
    passed_ns: Option<f64>,
}

/// The times of a bracket that the GPU has passed.
pub(crate) struct BracketTimes {
    pub start: Event,
    pub raw_ns: f64,
    /// The host time after the stop record.
    pub stopped_ns: u64,
}

impl FeedDetector {
    /// Creates a detector for one stream's brackets. Without `fit`, no bracket is proved fed.
    pub fn new(fit: Option<ClockFit>) -> FeedDetector {
        FeedDetector { fit, first: None, passed_ns: None }
    }

    /// Moves on to the next bracket. Returns `true` if the GPU reached its start only after the
    /// host had enqueued its stop.
    #[inline]
    pub fn pass<G: Gpu>(&mut self, gpu: &G, next: &BracketTimes) -> bool {
        self.passed_ns = None;
        let Some(fit) = self.fit else { return false };
        let pair = EventPair { start: fit.anchor, stop: next.start };
        let Some(device_ns) = gpu.since(&pair) else { return false };
        let started_ns = fit.earliest_ns(device_ns);
        self.passed_ns = Some(started_ns + fit.least_ns(next.raw_ns));
        started_ns > next.stopped_ns as f64 + fit.margin_ns
    }

    /// Moves on to the next bracket without looking at its times.
    #[inline]
    pub fn skip(&mut self) {
        self.passed_ns = None;
    }

    /// Returns the moments at which the GPU passed the start and the stop of a bracket that took
    /// `raw_ns`.
    ///
    /// Event times are 32-bit floats, which become coarse long after the anchor. Therefore only the
    /// first start is measured from the anchor, and later ones from the first.
    pub fn moments<G: Gpu>(&mut self, gpu: &G, start: &Event, raw_ns: f64) -> Option<[Moment; 2]> {
        let fit = self.fit?;
        let (from, from_ns) = self.first.unwrap_or((fit.anchor, 0.0));
        let start_ns = from_ns + gpu.since(&EventPair { start: from, stop: *start })?;
        self.first.get_or_insert((*start, start_ns));
        Some([start_ns, start_ns + raw_ns].map(|ns| fit.moment(ns)))
    }

    /// Returns `true` if the GPU certainly passed the last bracket's stop after this host time.
    #[inline]
    pub fn is_past(&self, host_ns: Option<u64>) -> bool {
        self.passed_ns.zip(host_ns).is_some_and(|(passed_ns, host_ns)| passed_ns > host_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::FakeGpu;

    const FIT: ClockFit = ClockFit {
        anchor: Event::new(1),
        zero_ns: 50_000.0,
        rate: 1.1,
        rate_error: 0.01,
        margin_ns: 100.0,
        early_ns: 49_200.0,
        window_ns: 4_800.0,
    };

    /// The fake GPU's events are 1,000 ns apart.
    #[test]
    fn moments_are_midpoints_of_the_possible_range() {
        let gpu = FakeGpu::default();
        let mut detector = FeedDetector::new(Some(FIT));
        let [start, stop] = detector.moments(&gpu, &Event::new(11), 500.0).unwrap();
        assert_eq!(start, Moment { host_ns: 50_000.0 + 1_600.0 + 11_000.0, error_ns: 2_500.0 });
        assert_eq!(stop.host_ns - start.host_ns, 550.0);
        let [next, _] = detector.moments(&gpu, &Event::new(13), 500.0).unwrap();
        assert_eq!(next.host_ns - start.host_ns, 2_200.0);
        assert!(FeedDetector::new(None).moments(&gpu, &Event::new(11), 500.0).is_none());
    }

    /// Returns the times of a bracket that the GPU passes from `from_us` to `to_us`. The host had enqueued its
    /// stop at `stopped_us`.
    fn times([from_us, to_us, stopped_us]: [u64; 3]) -> BracketTimes {
        BracketTimes {
            start: Event::new(from_us as usize),
            raw_ns: (to_us - from_us) as f64 * 1e3,
            stopped_ns: stopped_us * 1_000,
        }
    }

    #[test]
    fn start_proves_fed_if_the_clocks_error_allows() {
        let fit = ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, ..FIT };
        let (gpu, mut detector) = (FakeGpu::default(), FeedDetector::new(Some(fit)));
        assert!(detector.pass(&gpu, &times([1_000, 2_000, 100])));
        // Within the clocks' error, the GPU may have reached it at 1,980 µs already.
        assert!(!detector.pass(&gpu, &times([2_000, 2_010, 1_985])));
        assert!(detector.pass(&gpu, &times([2_010, 2_020, 1_980])));
    }

    /// The second bracket's stream got the handle of a stream that was destroyed with work pending.
    #[test]
    fn bracket_behind_a_late_one_may_be_starved() {
        let fit = ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, ..FIT };
        let (gpu, mut detector) = (FakeGpu::default(), FeedDetector::new(Some(fit)));
        assert!(detector.pass(&gpu, &times([1_000, 20_000, 100])));
        assert!(!detector.pass(&gpu, &times([2_000, 2_100, 2_050])));
    }
}
