//! The GPU's way through the brackets of one stream, in the host's time.
//!
//! A sample is fed when the GPU reached its start only after the host had enqueued its stop. That the
//! start still reads pending then would not show it, because the host sees what the GPU does a
//! microsecond or two late; so the times of both are compared.

use std::ptr;

use crate::gpu::Gpu;
use crate::record::stream_state::{Mark, StreamState};
use crate::stats::clock_fit::{ClockFit, Moment};
use crate::types::handles::{Event, EventPair};

/// Where the GPU is known to have been in a stream.
pub(crate) struct FeedDetector {
    fit: Option<ClockFit>,
    /// The first event that was dated, and its time since the anchor.
    dated: Option<(Event, f64)>,
    last: Option<LastBracket>,
}

/// The last bracket that was passed.
struct LastBracket {
    /// The host's time at which the GPU passed its stop, at the earliest.
    ns: f64,
    closed: StreamPosition,
}

/// A bracket that the GPU has passed.
pub(crate) struct BracketTimes {
    pub start: Event,
    pub raw_ns: f64,
    /// The host's time after the stop record.
    pub stopped_ns: u64,
    pub opened: Mark,
    pub closed: StreamPosition,
}

/// On which track a bracket was closed, and what that was like.
#[derive(Clone, Copy)]
pub(crate) struct StreamPosition {
    pub stream_state: &'static StreamState,
    pub mark: Mark,
}

impl BracketTimes {
    /// Whether it was begun after the other had been closed, so that its start came after that one's stop. Not
    /// so where one lies in the other, or where two threads handed them over in another order.
    #[inline]
    fn follows(&self, other: StreamPosition) -> bool {
        ptr::eq(self.closed.stream_state, other.stream_state) && self.opened.is_after(other.mark)
    }
}

impl FeedDetector {
    /// The beginning of a walk through a stream's brackets in their order.
    pub fn new(fit: Option<ClockFit>) -> FeedDetector {
        FeedDetector { fit, dated: None, last: None }
    }

    /// Passes a bracket. Answers whether the GPU reached its start only after the host had enqueued its stop.
    ///
    /// A start comes after the stop of the bracket before it. Where that was late enough already, as in a long
    /// queue, nobody needs to ask for the start's own time.
    #[inline]
    pub fn pass<G: Gpu>(&mut self, gpu: &G, next: &BracketTimes) -> bool {
        let Some(fit) = self.fit else { return false };
        let enough_ns = next.stopped_ns as f64 + fit.margin_ns;
        let started_ns = match &self.last {
            Some(passed) if passed.ns > enough_ns && next.follows(passed.closed) => passed.ns,
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
        let ns = started_ns + fit.least_ns(next.raw_ns);
        self.last = Some(LastBracket { ns, closed: next.closed });
        started_ns > enough_ns
    }

    /// Passes a bracket of which nothing is to be known.
    #[inline]
    pub fn skip(&mut self) {
        self.last = None;
    }

    /// When the GPU passed a bracket of `raw_ns`: its start and its stop.
    ///
    /// Event times are 32-bit floats, which say little long after the anchor. So only the first start is
    /// counted from there, and those after it from that one.
    pub fn date<G: Gpu>(&mut self, gpu: &G, start: &Event, raw_ns: f64) -> Option<[Moment; 2]> {
        let fit = self.fit?;
        let (from, from_ns) = self.dated.unwrap_or((fit.anchor, 0.0));
        let start_ns = from_ns + gpu.since(&EventPair { start: from, stop: *start })?;
        self.dated.get_or_insert((*start, start_ns));
        Some([start_ns, start_ns + raw_ns].map(|ns| fit.moment(ns)))
    }

    /// Whether the GPU passed the last stop after this moment of the host's.
    #[inline]
    pub fn is_past(&self, host_ns: Option<u64>) -> bool {
        match (&self.last, host_ns) {
            (Some(passed), Some(host_ns)) => passed.ns > host_ns as f64,
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

    /// The fake's events are a thousand nanoseconds apart.
    #[test]
    fn brackets_are_dated_in_the_middle_of_what_is_possible() {
        let gpu = FakeGpu::default();
        let mut detector = FeedDetector::new(Some(FIT));
        let [start, stop] = detector.date(&gpu, &Event::new(11), 500.0).unwrap();
        assert_eq!(start, Moment { host_ns: 50_000.0 + 1_600.0 + 11_000.0, error_ns: 2_500.0 });
        assert_eq!(stop.host_ns - start.host_ns, 550.0);
        let [next, _] = detector.date(&gpu, &Event::new(13), 500.0).unwrap();
        assert_eq!(next.host_ns - start.host_ns, 2_200.0);
        assert!(FeedDetector::new(None).date(&gpu, &Event::new(11), 500.0).is_none());
    }

    /// A bracket that the GPU passes from one microsecond to the other, and whose stop the host had enqueued at
    /// the third.
    fn crossing(
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

    /// What is concluded from the stop before is what asking would have said, also where the device's clock
    /// may be the slower one.
    #[test]
    fn a_bracket_takes_no_longer_than_it_may_have_by_the_hosts_clock() {
        let fit = ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, ..FIT };
        let stream_state = Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64), &()))));
        let (gpu, mut detector) = (FakeGpu::default(), FeedDetector::new(Some(fit)));
        assert!(detector.pass(&gpu, &crossing(stream_state, [1_000, 2_000, 100])));
        // By then it may be 1,980 µs to the host.
        assert!(!detector.pass(&gpu, &crossing(stream_state, [2_000, 2_010, 1_985])));
        assert!(detector.pass(&gpu, &crossing(stream_state, [2_010, 2_020, 1_980])));
    }
}
