//! How often a site was called and what became of the calls.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// How often a reading is taken before it is believed, at first without a pause.
const ATTEMPTS: u32 = 2_000;
const SPINS: u32 = 1_000;
const PAUSE: Duration = Duration::from_micros(100);

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It served to warm up.
    Warmup,
    /// It was switched off, filtered out, not sampled, or could not be timed at all.
    Skipped,
    /// It is measured, or lost in the attempt.
    Timed,
}

/// A reading of counters. `calls = warmup + skipped + timed`, each counted by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub calls: u64,
    pub warmup: u64,
    pub skipped: u64,
    pub timed: u64,
}

impl Counts {
    pub fn is_consistent(&self) -> bool {
        self.calls == self.warmup + self.skipped + self.timed
    }

    pub fn add(&mut self, other: Counts) {
        self.calls += other.calls;
        self.warmup += other.warmup;
        self.skipped += other.skipped;
        self.timed += other.timed;
    }
}

/// The counters of one site on one thread, and the thread's lease of warm-up calls.
///
/// Invariant: one thread writes, so a load and a store make an increment. That is a nanosecond, where
/// an atomic read-modify-write takes seven, and forty-five when threads share it.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Slot {
    calls: AtomicU64,
    warmup: AtomicU64,
    skipped: AtomicU64,
    timed: AtomicU64,
    lease_context: AtomicU64,
    lease: AtomicU64,
    /// The context for which no warm-up call was left when the thread last asked.
    warm_context: AtomicU64,
}

impl Slot {
    /// Counts one call.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        bump(&self.calls);
        bump(match outcome {
            Outcome::Warmup => &self.warmup,
            Outcome::Skipped => &self.skipped,
            Outcome::Timed => &self.timed,
        });
    }

    /// Uses one call of the warm-up lease for `context`, if there is one.
    #[inline]
    pub fn use_lease(&self, context: usize) -> bool {
        let left = self.lease.load(Relaxed);
        if left == 0 || self.lease_context.load(Relaxed) != context as u64 {
            return false;
        }
        self.lease.store(left - 1, Relaxed);
        true
    }

    /// Gives back what the last [`Slot::use_lease`] took.
    pub fn return_lease(&self) {
        bump(&self.lease);
    }

    /// Whether nothing was left to lease for `context`. What is used up stays so.
    pub fn is_warm(&self, context: usize) -> bool {
        self.warm_context.load(Relaxed) == context as u64
    }

    /// Remembers that nothing is left to lease for `context`.
    pub fn set_warm(&self, context: usize) {
        self.warm_context.store(context as u64, Relaxed);
    }

    /// Gives up what is left of the lease: its context, and how many calls.
    pub fn take_lease(&self) -> Option<(usize, u32)> {
        let left = self.lease.load(Relaxed);
        self.lease.store(0, Relaxed);
        (left > 0).then(|| (self.lease_context.load(Relaxed) as usize, left as u32))
    }

    /// Whether a lease, of whatever context, has calls left.
    pub fn has_lease(&self) -> bool {
        self.lease.load(Relaxed) > 0
    }

    /// Keeps a lease of `calls` warm-up calls for `context`; there must be none left.
    pub fn set_lease(&self, context: usize, calls: u32) {
        self.lease_context.store(context as u64, Relaxed);
        self.lease.store(u64::from(calls), Relaxed);
    }

    /// Reads the counters while their thread goes on counting.
    ///
    /// A reading between the two stores of [`Slot::count`] is one call short on one side; it is
    /// taken again. A thread that was preempted there gets time to go on; one that will never run
    /// again, as in a process that ends, has its call left out.
    pub fn read(&self) -> Counts {
        for attempt in 0..ATTEMPTS {
            let counts = self.read_once();
            if counts.is_consistent() {
                return counts;
            }
            if attempt >= SPINS {
                thread::sleep(PAUSE);
            }
        }
        let counts = self.read_once();
        Counts { calls: counts.warmup + counts.skipped + counts.timed, ..counts }
    }

    fn read_once(&self) -> Counts {
        Counts {
            warmup: self.warmup.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            timed: self.timed.load(Relaxed),
            calls: self.calls.load(Relaxed),
        }
    }
}

#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// The same counters where several threads write.
pub(crate) struct SharedCounts {
    calls: AtomicU64,
    warmup: AtomicU64,
    skipped: AtomicU64,
    timed: AtomicU64,
}

impl SharedCounts {
    pub const fn new() -> Self {
        SharedCounts {
            calls: AtomicU64::new(0),
            warmup: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            timed: AtomicU64::new(0),
        }
    }

    pub fn count(&self, outcome: Outcome) {
        self.calls.fetch_add(1, Relaxed);
        match outcome {
            Outcome::Warmup => &self.warmup,
            Outcome::Skipped => &self.skipped,
            Outcome::Timed => &self.timed,
        }
        .fetch_add(1, Relaxed);
    }

    pub fn read(&self) -> Counts {
        Counts {
            warmup: self.warmup.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            timed: self.timed.load(Relaxed),
            calls: self.calls.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_consistent_while_the_thread_counts() {
        let slot = Slot::default();
        std::thread::scope(|s| {
            let writer = s.spawn(|| {
                for i in 0..200_000u32 {
                    slot.count(match i % 3 {
                        0 => Outcome::Warmup,
                        1 => Outcome::Skipped,
                        _ => Outcome::Timed,
                    });
                }
            });
            while !writer.is_finished() {
                assert!(slot.read().is_consistent());
            }
        });
        assert_eq!(slot.read().calls, 200_000);
    }

    #[test]
    fn a_lease_serves_its_own_context_only() {
        let slot = Slot::default();
        slot.set_lease(7, 2);
        assert!(!slot.use_lease(8));
        assert!(slot.use_lease(7) && slot.use_lease(7));
        assert!(!slot.use_lease(7));
    }
}
