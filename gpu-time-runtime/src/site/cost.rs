//! What timing a site costs: counted for the budget, and only while there is one.

use std::borrow::Borrow;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::base::switches::SWITCHES;
use crate::stats::budget::Usage;
use crate::stats::sampling::generator;

/// One timed call of so many has its host time taken, and so has one look of so many.
const ONE_IN: u8 = 8;
/// What a call takes of the host beyond this is no cost of each: its context was calibrated, or the
/// stream was full, for which the launch would have waited too.
pub(crate) const LONGEST_NS: u64 = 100_000;
/// What a look at a call that is passed over takes beyond this is none of its own: the rates were adjusted,
/// which is counted by itself, or the thread stood still.
const LONGEST_LOOK_NS: u64 = 1_000;

/// What was counted of a site since somebody looked.
#[repr(align(64))] // written by timed calls, and not where every call reads
pub(crate) struct CostMeter {
    calls: AtomicU64,
    timed: AtomicU64,
    device_ns: AtomicU64,
    metered: AtomicU64,
    metered_ns: AtomicU64,
    looked_ns: AtomicU64,
}

/// Whether costs are counted.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.budget.load(Relaxed)
}

impl CostMeter {
    pub const fn new() -> Self {
        CostMeter {
            calls: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            device_ns: AtomicU64::new(0),
            metered: AtomicU64::new(0),
            metered_ns: AtomicU64::new(0),
            looked_ns: AtomicU64::new(0),
        }
    }

    /// Counts calls of which it is decided whether they are timed.
    pub fn count(&self, calls: u64) {
        self.calls.fetch_add(calls, Relaxed);
    }

    /// Counts one of them that is.
    pub fn count_timed(&self) {
        self.timed.fetch_add(1, Relaxed);
    }

    /// Counts what a timed call takes of the device.
    #[cold]
    pub fn spend(&self, device_ns: f64) {
        self.device_ns.fetch_add(device_ns as u64, Relaxed);
    }

    /// Begins to decide about a call: what that takes may be what is taken of it.
    #[inline]
    pub fn look(&'static self) -> Option<Look> {
        (is_on() && one_in(ONE_IN)).then(|| Look { meter: self, began: Instant::now() })
    }

    /// Takes the host time of a call that began so long ago.
    #[cfg(test)]
    pub fn meter(&'static self, ago: std::time::Duration) {
        let mut stint = Stint::none();
        stint.take(self);
        stint.0.as_mut().unwrap().began -= ago;
    }

    /// What was counted, which is then forgotten.
    pub fn take(&self) -> Usage {
        self.read(|count| count.swap(0, Relaxed))
    }

    /// What was counted.
    pub fn peek(&self) -> Usage {
        self.read(|count| count.load(Relaxed))
    }

    fn read(&self, one: impl Fn(&AtomicU64) -> u64) -> Usage {
        let number = |count| one(count) as f64;
        Usage {
            calls: number(&self.calls),
            timed: number(&self.timed),
            device_ns: number(&self.device_ns),
            metered: number(&self.metered),
            metered_ns: number(&self.metered_ns),
            looked_ns: number(&self.looked_ns),
        }
    }
}

/// The time that it takes to decide about a call, from its beginning to its drop, as one of those that stand
/// for all.
#[must_use]
pub(crate) struct Look {
    meter: &'static CostMeter,
    began: Instant,
}

impl Drop for Look {
    #[cold]
    fn drop(&mut self) {
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let all_ns = u64::from(ONE_IN) * took.min(LONGEST_LOOK_NS);
        self.meter.looked_ns.fetch_add(all_ns, Relaxed);
    }
}

/// Whether this is the one of so many, by a generator of the thread's own.
fn one_in(many: u8) -> bool {
    thread_local! {
        static SEED: Cell<u64> = const { Cell::new(0) };
    }
    SEED.with(|seed| {
        let mut rng = generator(seed.get());
        let is_it = rng.u8(..many) == 0;
        seed.set(rng.get_seed());
        is_it
    })
}

/// What the bookkeeping of one timed call takes of the host, where that is taken.
///
/// Invariant: it is counted when the call ends, once, so that a time and its count are never looked at
/// apart, however long the call takes.
pub(crate) struct Tab {
    meter: Option<&'static CostMeter>,
    ns: AtomicU64,
}

impl Tab {
    /// That of a call whose host time is not taken.
    pub const fn none() -> Tab {
        Tab::of(None, 0)
    }

    const fn of(meter: Option<&'static CostMeter>, ns: u64) -> Tab {
        Tab { meter, ns: AtomicU64::new(ns) }
    }

    #[cold]
    fn count(&mut self, meter: &CostMeter) {
        meter.metered_ns.fetch_add(*self.ns.get_mut(), Relaxed);
        meter.metered.fetch_add(1, Relaxed);
    }
}

impl Drop for Tab {
    #[inline]
    fn drop(&mut self) {
        if let Some(meter) = self.meter {
            self.count(meter);
        }
    }
}

/// A stretch of such bookkeeping, from its beginning to its drop.
#[must_use]
pub(crate) struct Stint<T: Borrow<Tab>>(Option<Running<T>>);

struct Running<T> {
    tab: T,
    began: Instant,
    longest_ns: u64,
}

impl<'a> Stint<&'a Tab> {
    /// Goes on with a call, if its host time is taken.
    #[inline]
    pub fn of(tab: &'a Tab) -> Self {
        if tab.meter.is_some() { Stint::on(tab) } else { Stint(None) }
    }
}

impl Stint<Tab> {
    /// That of a call whose host time is not taken.
    pub const fn none() -> Self {
        Stint(None)
    }

    /// Begins a timed call: its host time may be one of those that are taken. In its place, because most are
    /// not, and nothing is to be moved for them.
    #[inline]
    pub fn begin(&mut self, meter: &'static CostMeter) {
        if is_on() && one_in(ONE_IN) {
            self.take(meter);
        }
    }

    #[cold]
    fn take(&mut self, meter: &'static CostMeter) {
        *self = Stint::on(Tab::of(Some(meter), 0));
    }

    /// Ends the first one. The tab is the call's, which goes on.
    #[inline]
    pub fn end(&mut self) -> Tab {
        let (meter, ns) = if self.0.is_some() { self.end_taken() } else { (None, 0) };
        Tab::of(meter, ns)
    }

    #[cold]
    fn end_taken(&mut self) -> (Option<&'static CostMeter>, u64) {
        let Some(mut running) = self.0.take() else { return (None, 0) };
        running.end();
        (running.tab.meter.take(), *running.tab.ns.get_mut())
    }
}

impl<T: Borrow<Tab>> Stint<T> {
    fn on(tab: T) -> Self {
        Stint(Some(Running { tab, began: Instant::now(), longest_ns: LONGEST_NS }))
    }

    /// The call waits for the GPU, which costs all that it takes.
    pub fn waits(&mut self) {
        if let Some(running) = &mut self.0 {
            running.longest_ns = u64::MAX;
        }
    }
}

impl<T: Borrow<Tab>> Drop for Stint<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.end();
        }
    }
}

impl<T: Borrow<Tab>> Running<T> {
    #[cold]
    fn end(&self) {
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.tab.borrow().ns.fetch_add(took.min(self.longest_ns), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_call_is_counted_once_and_when_it_ends() {
        static METER: CostMeter = CostMeter::new();
        let taken = || {
            let mut stint = Stint::none();
            stint.take(&METER);
            stint
        };
        let tab = taken().end();
        drop(Stint::of(&tab));
        assert_eq!((METER.take().metered, METER.take().metered_ns), (0.0, 0.0));
        drop(tab);
        assert_eq!(METER.take().metered, 1.0);
        // One that was not timed after all is counted as well.
        drop(taken());
        assert_eq!(METER.take().metered, 1.0);
    }

    /// All of it, up to what may be an interruption.
    #[test]
    fn a_timed_call_costs_what_it_takes() {
        static METER: CostMeter = CostMeter::new();
        METER.meter(Duration::from_nanos(50_000));
        let took = METER.take().metered_ns;
        assert!((50_000.0..=LONGEST_NS as f64).contains(&took), "{took}");
        METER.meter(Duration::from_secs(1));
        assert_eq!(METER.take().metered_ns, LONGEST_NS as f64);
    }

    /// However long it took: it may have been interrupted.
    #[test]
    fn a_look_stands_for_others_and_is_no_timed_call() {
        static METER: CostMeter = CostMeter::new();
        drop(Look { meter: &METER, began: Instant::now() - Duration::from_secs(1) });
        let usage = METER.take();
        assert_eq!((usage.metered, usage.metered_ns, usage.looked_ns), (0.0, 0.0, 8_000.0));
    }
}
