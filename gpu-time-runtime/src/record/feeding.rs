//! Decides whether a bracket was fed: based on its hold, on the host time, or otherwise by aligning
//! the GPU clock with the host clock.
//!
//! A sample is fed if the GPU reached its start only after the host had enqueued its stop. It is
//! not enough that the start event is still pending at that moment, because the host sees the GPU's
//! progress a microsecond or two late. Therefore the two times are compared.

use std::ptr;

use crate::gpu::{Gpu, HoldResult};
use crate::record::stream_state::{Mark, StreamState};
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
    /// No evidence: it depends on when the GPU reached the start.
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

/// Follows the GPU through one stream's brackets, in order.
pub(crate) struct FeedDetector {
    fit: Option<ClockFit>,
    /// The first start event located in time for a trace, and its time since the anchor.
    first: Option<(Event, f64)>,
    last: Option<LastBracket>,
}

/// The bracket that the detector passed last.
struct LastBracket {
    /// The earliest host time at which the GPU can have passed the bracket's stop.
    stopped_ns: f64,
    closed: StreamPosition,
}

/// The times of a bracket that the GPU has passed.
pub(crate) struct BracketTimes {
    pub start: Event,
    pub raw_ns: f64,
    /// The host time after the stop record.
    pub stopped_ns: u64,
    pub opened: Mark,
    pub closed: StreamPosition,
}

/// The stream state on which a bracket was closed, and the mark from closing it.
#[derive(Clone, Copy)]
pub(crate) struct StreamPosition {
    pub stream_state: &'static StreamState,
    pub mark: Mark,
}

impl BracketTimes {
    /// Returns `true` if this bracket was opened after the other was closed, so its start came
    /// after the other's stop. Returns `false` if one lies inside the other, or if two threads
    /// handed them over in a different order.
    #[inline]
    fn follows(&self, other: StreamPosition) -> bool {
        ptr::eq(self.closed.stream_state, other.stream_state) && self.opened.is_after(other.mark)
    }
}

impl FeedDetector {
    /// Creates a detector for one stream's brackets. Without `fit`, no bracket is proved fed.
    pub fn new(fit: Option<ClockFit>) -> FeedDetector {
        FeedDetector { fit, first: None, last: None }
    }

    /// Passes a bracket. Returns `true` if the GPU reached its start only after the host had
    /// enqueued its stop.
    ///
    /// A bracket's start comes after the preceding bracket's stop. If that stop was already late
    /// enough, as in a long queue, there is no need to ask the driver for the start time.
    #[inline]
    pub fn pass<G: Gpu>(&mut self, gpu: &G, next: &BracketTimes) -> bool {
        let Some(fit) = self.fit else { return false };
        let enough_ns = next.stopped_ns as f64 + fit.margin_ns;
        let started_ns = match &self.last {
            Some(last) if last.stopped_ns > enough_ns && next.follows(last.closed) => {
                last.stopped_ns
            }
            _ => {
                let pair = EventPair { start: fit.anchor, stop: next.start };
                match gpu.since(&pair) {
                    Some(device_ns) => fit.earliest_ns(device_ns),
                    None => {
                        self.last = None;
                        return false;
                    }
                }
            }
        };
        let stopped_ns = started_ns + fit.least_ns(next.raw_ns);
        self.last = Some(LastBracket { stopped_ns, closed: next.closed });
        started_ns > enough_ns
    }

    /// Passes a bracket without looking at its times.
    #[inline]
    pub fn skip(&mut self) {
        self.last = None;
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

    /// Returns `true` if the GPU passed the last bracket's stop after this host time.
    #[inline]
    pub fn is_past(&self, host_ns: Option<u64>) -> bool {
        match (&self.last, host_ns) {
            (Some(last), Some(host_ns)) => last.stopped_ns > host_ns as f64,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::FakeGpu;
    use crate::record::stream_state::StreamKey;
    use crate::types::handles::Stream;

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

    /// A bracket that the GPU passes from `from_us` to `to_us`. The host had enqueued its stop at
    /// `stopped_us`.
    fn times(
        stream_state: &'static StreamState,
        [from_us, to_us, stopped_us]: [u64; 3],
    ) -> BracketTimes {
        let opened = stream_state.open(StreamKey::new(Stream(64), &())).unwrap();
        let mark = stream_state.close();
        BracketTimes {
            start: Event::new(from_us as usize),
            raw_ns: (to_us - from_us) as f64 * 1e3,
            stopped_ns: stopped_us * 1_000,
            opened,
            closed: StreamPosition { stream_state, mark },
        }
    }

    /// The preceding stop leads to the same conclusion as asking for the start time, even if the
    /// device clock is the slower one.
    #[test]
    fn stop_before_proves_no_more_than_the_start_itself() {
        let fit = ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, ..FIT };
        let stream_state = Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64), &()))));
        let (gpu, mut detector) = (FakeGpu::default(), FeedDetector::new(Some(fit)));
        assert!(detector.pass(&gpu, &times(stream_state, [1_000, 2_000, 100])));
        // On the host clock, the preceding stop may have been passed as early as 1,980 µs.
        assert!(!detector.pass(&gpu, &times(stream_state, [2_000, 2_010, 1_985])));
        assert!(detector.pass(&gpu, &times(stream_state, [2_010, 2_020, 1_980])));
    }
}
