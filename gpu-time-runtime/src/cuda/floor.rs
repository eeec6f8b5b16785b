//! What a pair of events reads with nothing between, and in which steps event times move.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use cudarc::driver::sys::{self, CUevent};

use crate::cuda::event::{create_event, elapsed};
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::stats::pair_constant::Floor;
use crate::types::handles::{Event, Stream};

/// Events in a row: the time from each to the next is an empty pair.
const EVENTS: usize = 33;

/// Empty pairs that were enqueued when the context was first seen, on our own stream, so that nobody
/// waits for them; they are read when somebody asks. Where the host was slow to enqueue them, they read too
/// much, so that what a calibration reads behind holds counts for more.
pub(super) struct FloorProbe {
    symbols: &'static Symbols,
    events: Vec<Event>,
    pair_ns: OnceLock<Option<f64>>,
    /// Bits of what a held empty pair reads; 0 until that was measured.
    held_pair: AtomicU64,
    step: Step,
    /// Bits of the longest time that says that nothing ran inside; 0 until it is known for good.
    limit: AtomicU64,
}

impl FloorProbe {
    /// Enqueues the pairs; the context must be current. Where that fails, the floor stays unknown.
    pub fn enqueue(symbols: &'static Symbols, side: Result<Stream, Fault>) -> FloorProbe {
        let events = side.and_then(record_all).unwrap_or_default();
        FloorProbe {
            symbols,
            events,
            pair_ns: OnceLock::new(),
            held_pair: AtomicU64::new(0),
            step: Step::default(),
            limit: AtomicU64::new(0),
        }
    }

    /// The floor, once the GPU has passed every event, or a calibration has read it.
    pub fn get(&self) -> Option<Floor> {
        if self.pair_ns.get().is_none()
            && let (Some(first), Some(last)) = (self.events.first(), self.events.last())
        {
            match elapsed(self.symbols, first, last) {
                Ok(None) => {}
                Ok(Some(_)) => _ = self.pair_ns.get_or_init(|| self.measure()),
                Err(_) => _ = self.pair_ns.get_or_init(|| None),
            }
        }
        self.known()
    }

    /// The floor, if somebody got it while the context was there.
    pub fn known(&self) -> Option<Floor> {
        let held_ns = f64::from_bits(self.held_pair.load(Relaxed));
        let probed_ns = || self.pair_ns.get().copied().flatten();
        let pair_ns = if held_ns > 0.0 { held_ns } else { probed_ns()? };
        Some(Floor { pair_ns, step_ns: self.step.get() })
    }

    /// Takes in what an empty pair reads behind a hold.
    pub fn refine(&self, held_ns: f64) {
        self.held_pair.store(held_ns.to_bits(), Relaxed);
        let limit = self.known().filter(|_| self.step.is_settled()).map_or(0.0, Floor::limit_ns);
        self.limit.store(limit.to_bits(), Release);
    }

    /// Whether a raw time says that nothing ran inside.
    #[inline]
    pub fn covers(&self, raw_ns: f64) -> bool {
        let limit = self.limit.load(Acquire);
        if limit != 0 { raw_ns <= f64::from_bits(limit) } else { self.find_limit(raw_ns) }
    }

    #[cold]
    fn find_limit(&self, raw_ns: f64) -> bool {
        // Asked first: the floor may be refined meanwhile, which then leaves a limit that stays.
        let is_settled = self.step.is_settled();
        let Some(floor) = self.get() else { return false };
        if is_settled {
            let limit = floor.limit_ns().to_bits();
            _ = self.limit.compare_exchange(0, limit, Release, Relaxed);
        }
        raw_ns <= floor.limit_ns()
    }

    /// Learns the step from a sample.
    #[inline]
    pub fn learn(&self, ns: f64) {
        self.step.learn(ns);
    }

    /// The median of neighbours. Their times are samples too.
    fn measure(&self) -> Option<f64> {
        let mut pairs = Vec::with_capacity(EVENTS);
        for (start, stop) in self.events.iter().zip(self.events.iter().skip(1)) {
            pairs.extend(elapsed(self.symbols, start, stop).ok().flatten());
        }
        pairs.iter().for_each(|ns| self.learn(*ns));
        pairs.sort_by(f64::total_cmp);
        pairs.get(pairs.len() / 2).copied()
    }
}

fn record_all(side: Stream) -> Result<Vec<Event>, Fault> {
    let events = (0..EVENTS).map(|_| create_event()).collect::<Result<Vec<_>, _>>()?;
    for event in &events {
        // SAFETY: event and stream were made in the current context and are never destroyed.
        check(unsafe { sys::cuEventRecord(event.handle() as CUevent, raw(side)) })?;
    }
    Ok(events)
}

/// The greatest number of nanoseconds of which all times are multiples: the step, once there were
/// some that differed.
#[derive(Default)]
struct Step {
    /// The greatest common divisor so far, and the last time; 0 before there was one.
    divisor: AtomicU64,
    last: AtomicU64,
    seen: AtomicU32,
    /// How many differed from the one before.
    different: AtomicU32,
}

impl Step {
    /// So many samples are looked at.
    const ENOUGH: u32 = 4_096;
    /// The divisor of fewer differing times may be any number of steps.
    const EVIDENCE: u32 = 8;
    /// Times are 32-bit floats of milliseconds: up to here the nearest nanosecond is the right one.
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
            self.take_in(ns);
        }
    }

    #[cold]
    fn take_in(&self, ns: f64) {
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
    fn the_step_divides_all_times() {
        let step = Step::default();
        assert_eq!(step.get(), None);
        for ns in [1_279.999_9, 1_280.0, 1_280.000_1, 0.0, 5_120.0, 5_152.0, 9_000_000.3, 1_280.0] {
            step.learn(ns);
        }
        for ns in [22_848.0, 1_280.0, 22_848.0] {
            step.learn(ns);
        }
        assert_eq!(step.get(), None, "seven differences prove nothing");
        step.learn(1_280.0);
        assert_eq!(step.get(), Some(32.0));
    }

    #[test]
    fn times_far_apart_have_a_small_step() {
        let step = Step::default();
        for _ in 0..8 {
            step.learn(22_880.0);
            step.learn(54_848.0);
        }
        assert_eq!(step.get(), Some(32.0));
    }
}
