//! What timing a site costs: counted for the budget, and only while there is one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::budget::Usage;
use crate::process::SWITCHES;

/// One timed call of so many has its host time taken.
const ONE_IN: u8 = 8;
/// What a call takes of the host beyond this is no cost of each: its context was calibrated, or the
/// stream was full, for which the launch would have waited too.
const LONGEST_NS: u64 = 100_000;

/// What was counted of a site since somebody looked.
#[repr(align(64))] // written by timed calls, and not where every call reads
pub(crate) struct Meter {
    calls: AtomicU64,
    timed: AtomicU64,
    device_ns: AtomicU64,
    metered: AtomicU64,
    metered_ns: AtomicU64,
}

/// Whether costs are counted.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCHES.budget.load(Relaxed)
}

impl Meter {
    pub const fn new() -> Self {
        Meter {
            calls: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            device_ns: AtomicU64::new(0),
            metered: AtomicU64::new(0),
            metered_ns: AtomicU64::new(0),
        }
    }

    /// Counts calls of which it was decided whether they are timed, and whether the last of them is.
    pub fn count(&self, calls: u64, is_timed: bool) {
        self.calls.fetch_add(calls, Relaxed);
        self.timed.fetch_add(u64::from(is_timed), Relaxed);
    }

    /// Counts what a timed call takes of the device.
    #[cold]
    pub fn spend(&self, device_ns: f64) {
        self.device_ns.fetch_add(device_ns as u64, Relaxed);
    }

    /// Begins a timed call: its host time may be one of those that are taken.
    #[inline]
    pub fn begin(&'static self) -> Stint {
        if is_on() && fastrand::u8(..ONE_IN) == 0 { self.begin_metered() } else { Stint(None) }
    }

    #[cold]
    fn begin_metered(&'static self) -> Stint {
        self.metered.fetch_add(1, Relaxed);
        self.resume()
    }

    /// Goes on with such a call.
    pub fn resume(&'static self) -> Stint {
        Stint(Some(Running { meter: self, began: Instant::now(), longest_ns: LONGEST_NS }))
    }

    /// What was counted, which is then forgotten.
    pub fn take(&self) -> Usage {
        let take = |count: &AtomicU64| count.swap(0, Relaxed) as f64;
        Usage {
            calls: take(&self.calls),
            timed: take(&self.timed),
            device_ns: take(&self.device_ns),
            metered: take(&self.metered),
            metered_ns: take(&self.metered_ns),
        }
    }
}

/// Host time of a timed call's bookkeeping, from its beginning to its drop.
#[must_use]
pub(crate) struct Stint(Option<Running>);

struct Running {
    meter: &'static Meter,
    began: Instant,
    longest_ns: u64,
}

impl Stint {
    /// Goes on with the call of this meter, if its host time is taken.
    #[inline]
    pub fn of(meter: Option<&'static Meter>) -> Stint {
        meter.map_or(Stint(None), Meter::resume)
    }

    /// The meter, if the call's host time is taken.
    #[inline]
    pub fn meter(&self) -> Option<&'static Meter> {
        self.0.as_ref().map(|running| running.meter)
    }

    /// The call waits for the GPU, which costs all that it takes.
    pub fn waits(&mut self) {
        if let Some(running) = &mut self.0 {
            running.longest_ns = u64::MAX;
        }
    }
}

impl Drop for Stint {
    #[inline]
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.end();
        }
    }
}

impl Running {
    #[cold]
    fn end(&self) {
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.meter.metered_ns.fetch_add(took.min(self.longest_ns), Relaxed);
    }
}
