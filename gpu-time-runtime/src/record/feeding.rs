//! The rule that decides whether a bracket was fed: by its hold, by the host's time, or else by aligning
//! the GPU's clock with the host's.
//!
//! A sample is fed if the GPU reached its start only after the host had enqueued its stop. It is not
//! enough that the start event still reads pending at that moment, because the host sees the GPU's
//! progress a microsecond or two late. So the two times are compared.

use std::ptr;

use crate::gpu::{Gpu, HoldResult};
use crate::record::stream_state::{Mark, StreamState};
use crate::stats::clock_fit::{ClockFit, Moment};
use crate::types::handles::{Event, EventPair};

/// Largest share of the measured time that the host may take to enqueue a bracket without a hold, for
/// the sample to count as fed.
const HOST_SHARE: f64 = 0.01;

/// Evidence on whether the GPU waited for the host inside a bracket, as of the enqueued stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feeding {
    /// The stream was held until the host had enqueued the stop, unless the hold expired.
    Held(HoldResult),
    /// The stop was enqueued before a hold of fixed length can have ended.
    Certain,
    /// Nanoseconds that the host took from before the start record to after the stop record.
    Host(u64),
    /// None: it depends on when the GPU reached the start.
    Unknown,
}

impl Feeding {
    /// Returns whether a bracket of this time was fed, or `None` if that depends on when the GPU reached its
    /// start, which a [`FeedDetector`] finds out.
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

/// Follows the GPU through the brackets of one stream, in their order.
pub(crate) struct FeedDetector {
    fit: Option<ClockFit>,
    /// The first start event placed in time for a trace, and its time since the anchor.
    first: Option<(Event, f64)>,
    last: Option<LastBracket>,
}

/// The bracket that the detector passed last.
struct LastBracket {
    /// Earliest time, by the host's clock, at which the GPU passed its stop.
    stopped_ns: f64,
    closed: StreamPosition,
}

/// The times of a bracket that the GPU has passed.
pub(crate) struct BracketTimes {
    pub start: Event,
    pub raw_ns: f64,
    /// The host's time after the stop record.
    pub stopped_ns: u64,
    pub opened: Mark,
    pub closed: StreamPosition,
}

/// The stream state on which a bracket was closed, with the mark of the close.
#[derive(Clone, Copy)]
pub(crate) struct StreamPosition {
    pub stream_state: &'static StreamState,
    pub mark: Mark,
}

impl BracketTimes {
    /// Returns `true` if this bracket was opened after the other was closed, so that its start came after
    /// the other's stop. `false` if one lies inside the other, or if two threads handed them over in
    /// another order.
    #[inline]
    fn follows(&self, other: StreamPosition) -> bool {
        ptr::eq(self.closed.stream_state, other.stream_state) && self.opened.is_after(other.mark)
    }
}

impl FeedDetector {
    /// Creates a detector for the brackets of one stream. Without `fit`, it proves no bracket fed.
    pub fn new(fit: Option<ClockFit>) -> FeedDetector {
        FeedDetector { fit, first: None, last: None }
    }

    /// Passes a bracket. Returns `true` if the GPU reached its start only after the host had enqueued its
    /// stop.
    ///
    /// A start comes after the stop of the bracket before it. If that stop was late enough already, as in
    /// a long queue, the driver is not asked for the time of the start.
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

    /// Returns the moments at which the GPU passed the start and the stop of a bracket of `raw_ns`.
    ///
    /// Event times are 32-bit floats, which are coarse long after the anchor. So only the first start is
    /// measured from the anchor, and later ones from the first.
    pub fn moments<G: Gpu>(&mut self, gpu: &G, start: &Event, raw_ns: f64) -> Option<[Moment; 2]> {
        let fit = self.fit?;
        let (from, from_ns) = self.first.unwrap_or((fit.anchor, 0.0));
        let start_ns = from_ns + gpu.since(&EventPair { start: from, stop: *start })?;
        self.first.get_or_insert((*start, start_ns));
        Some([start_ns, start_ns + raw_ns].map(|ns| fit.moment(ns)))
    }

    /// Returns `true` if the GPU passed the stop of the last bracket after this time of the host.
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

    /// Events of the fake GPU are 1,000 ns apart.
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

    /// A bracket that the GPU passes from `from_us` to `to_us`, and whose stop the host had enqueued at
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

    /// The conclusion from the stop before equals the answer to a question for the start, even if the
    /// device's clock may be the slower one.
    #[test]
    fn stop_before_proves_no_more_than_the_start_itself() {
        let fit = ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, ..FIT };
        let stream_state = Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64), &()))));
        let (gpu, mut detector) = (FakeGpu::default(), FeedDetector::new(Some(fit)));
        assert!(detector.pass(&gpu, &times(stream_state, [1_000, 2_000, 100])));
        // By the host's clock, the stop before may have been passed at 1,980 µs already.
        assert!(!detector.pass(&gpu, &times(stream_state, [2_000, 2_010, 1_985])));
        assert!(detector.pass(&gpu, &times(stream_state, [2_010, 2_020, 1_980])));
    }
}
