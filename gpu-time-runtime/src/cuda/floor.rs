//! Measures the floor of event times: the time of an empty event pair, and the resolution of event
//! times, called the step.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::objects::{create_event, elapsed, record_event};
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::stats::pair_constant::Floor;
use crate::types::handles::{Event, Stream};

/// The number of consecutive events. Any two neighbours form an empty pair.
const EVENTS: usize = 33;

/// Measures the floor in one context.
///
/// Empty pairs are enqueued on the runtime's own stream when the context is first seen, and read
/// when the floor is first needed, so nothing waits for them. Their times are too long if the host
/// enqueued them slowly. The time that calibration measures behind holds therefore takes
/// precedence.
pub(super) struct FloorProbe {
    symbols: &'static Symbols,
    /// Empty after the events have been read.
    events: Mutex<Vec<Event>>,
    pair_ns: OnceLock<Option<f64>>,
    /// The time of a held empty pair, as the bits of an `f64`; 0 until it is measured.
    held_pair: AtomicU64,
    step: StepEstimator,
    /// The longest raw time of an empty bracket, as the bits of an `f64`; 0 until it is final.
    limit: AtomicU64,
}

impl FloorProbe {
    /// Enqueues the pairs. The context must be current. On failure, the floor stays unknown.
    pub fn enqueue(symbols: &'static Symbols, own_stream: Result<Stream, Fault>) -> FloorProbe {
        let events = own_stream.and_then(record_all).unwrap_or_default();
        FloorProbe {
            symbols,
            events: Mutex::new(Rank::FloorEvents, events),
            pair_ns: OnceLock::new(),
            held_pair: AtomicU64::new(0),
            step: StepEstimator::default(),
            limit: AtomicU64::new(0),
        }
    }

    /// Returns the floor, once the GPU has passed every event or calibration has measured it. The
    /// context must exist.
    pub fn get(&self) -> Option<Floor> {
        if self.pair_ns.get().is_none() {
            let mut events = locked(&self.events);
            if let (Some(first), Some(last)) = (events.first(), events.last()) {
                let pair_ns = match elapsed(self.symbols, first, last) {
                    Ok(None) => return self.known(),
                    Ok(Some(_)) => self.measure(&events),
                    Err(_) => None,
                };
                _ = self.pair_ns.set(pair_ns);
                *events = Vec::new();
            }
        }
        self.known()
    }

    /// Frees the list of events after the context has been destroyed.
    pub fn retire(&self) {
        *locked(&self.events) = Vec::new();
    }

    /// Returns the floor if it has been measured. Does not call the driver.
    pub fn known(&self) -> Option<Floor> {
        let held_ns = f64::from_bits(self.held_pair.load(Relaxed));
        let probed_ns = || self.pair_ns.get().copied().flatten();
        let pair_ns = if held_ns > 0.0 { held_ns } else { probed_ns()? };
        Some(Floor { pair_ns, step_ns: self.step.get() })
    }

    /// Sets the time of an empty pair behind a hold, as measured by calibration.
    pub fn refine(&self, held_ns: f64) {
        self.held_pair.store(held_ns.to_bits(), Relaxed);
        let limit = self.known().filter(|_| self.step.is_settled()).map_or(0.0, Floor::limit_ns);
        self.limit.store(limit.to_bits(), Release);
    }

    /// Returns `true` if a raw time indicates an empty bracket.
    #[inline]
    pub fn covers(&self, raw_ns: f64) -> bool {
        let limit = self.limit.load(Acquire);
        if limit != 0 { raw_ns <= f64::from_bits(limit) } else { self.find_limit(raw_ns) }
    }

    #[cold]
    fn find_limit(&self, raw_ns: f64) -> bool {
        // Read before the floor: if the step is settled by then, a calibration that refines the floor in
        // between stores a limit, which must not be overwritten.
        let is_settled = self.step.is_settled();
        let Some(floor) = self.get() else { return false };
        if is_settled {
            let limit = floor.limit_ns().to_bits();
            _ = self.limit.compare_exchange(0, limit, Release, Relaxed);
        }
        raw_ns <= floor.limit_ns()
    }

    /// Updates the step from a sample.
    #[inline]
    pub fn learn(&self, ns: f64) {
        self.step.learn(ns);
    }

    /// Returns the median time between neighbouring events. Also uses these times as samples for
    /// the step.
    fn measure(&self, events: &[Event]) -> Option<f64> {
        let mut pairs = Vec::with_capacity(EVENTS);
        for (start, stop) in events.iter().zip(events.iter().skip(1)) {
            pairs.extend(elapsed(self.symbols, start, stop).ok().flatten());
        }
        pairs.iter().for_each(|ns| self.learn(*ns));
        pairs.sort_by(f64::total_cmp);
        pairs.get(pairs.len() / 2).copied()
    }
}

fn record_all(own_stream: Stream) -> Result<Vec<Event>, Fault> {
    let events = (0..EVENTS).map(|_| create_event()).collect::<Result<Vec<_>, _>>()?;
    events.iter().try_for_each(|event| record_event(event, own_stream))?;
    Ok(events)
}

/// Derives the step from samples, as their greatest common divisor in nanoseconds.
#[derive(Default)]
struct StepEstimator {
    /// The greatest common divisor so far, or 0 before the first sample.
    divisor: AtomicU64,
    /// The last sample, or 0 before the first one.
    last: AtomicU64,
    seen: AtomicU32,
    /// The number of samples that differed from the preceding one.
    different: AtomicU32,
}

impl StepEstimator {
    /// The maximum number of samples used.
    const ENOUGH: u32 = 4_096;
    /// The number of differing samples needed for the divisor to be the step. With fewer, it may be
    /// any multiple of the step.
    const EVIDENCE: u32 = 8;
    /// The longest sample used. The driver returns times as `f32` milliseconds, which are exact to
    /// the nanosecond up to this limit.
    const LONGEST_NS: f64 = 8e6;

    fn get(&self) -> Option<f64> {
        let is_known = self.different.load(Relaxed) >= Self::EVIDENCE;
        is_known.then(|| self.divisor.load(Relaxed) as f64)
    }

    fn is_settled(&self) -> bool {
        self.seen.load(Relaxed) >= Self::ENOUGH
    }

    #[inline]
    fn learn(&self, ns: f64) {
        if !self.is_settled() {
            self.add(ns);
        }
    }

    #[cold]
    fn add(&self, ns: f64) {
        self.seen.fetch_add(1, Relaxed);
        let ns = match ns {
            0.5..=Self::LONGEST_NS => ns.round() as u64,
            _ => return,
        };
        if self.last.swap(ns, Relaxed) != ns {
            self.different.fetch_add(1, Relaxed);
        }
        _ = self.divisor.fetch_update(Relaxed, Relaxed, |divisor| {
            (divisor == 0 || ns % divisor != 0).then(|| common_divisor(divisor, ns))
        });
    }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_divides_all_times() {
        let step = StepEstimator::default();
        assert_eq!(step.get(), None);
        for ns in [1_279.999_9, 1_280.0, 1_280.000_1, 0.0, 5_120.0, 5_152.0, 9_000_000.3, 1_280.0] {
            step.learn(ns);
        }
        for ns in [22_848.0, 1_280.0, 22_848.0] {
            step.learn(ns);
        }
        assert_eq!(step.get(), None, "seven differing times are too few");
        step.learn(1_280.0);
        assert_eq!(step.get(), Some(32.0));
    }

    #[test]
    fn step_of_two_distant_times_is_their_divisor() {
        let step = StepEstimator::default();
        for _ in 0..8 {
            step.learn(22_880.0);
            step.learn(54_848.0);
        }
        assert_eq!(step.get(), Some(32.0));
    }
}
