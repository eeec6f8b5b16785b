//! How often a site was called and what became of the calls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::base::lock::locked;
use crate::stats::sampling::{Population, Sampler};
use crate::types::sampling::Sampling;

/// How often a reading is taken before it is believed, at first without a pause.
const ATTEMPTS: u32 = 2_000;
const SPINS: u32 = 1_000;
const PAUSE: Duration = Duration::from_micros(100);

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It served to warm up.
    Warmup,
    /// It was switched off, filtered out, or could not be timed at all.
    Skipped,
    /// It was not sampled.
    Unsampled,
    /// It is measured, or lost in the attempt.
    Timed,
}

/// A reading of counters. `calls = warmup + skipped + unsampled + timed`, each counted by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub calls: u64,
    pub warmup: u64,
    pub skipped: u64,
    pub unsampled: u64,
    pub timed: u64,
}

impl Counts {
    pub fn is_consistent(&self) -> bool {
        self.calls == self.sum()
    }

    fn sum(&self) -> u64 {
        self.warmup + self.all_skipped() + self.timed
    }

    /// Calls that were skipped for whatever reason, as reports count them.
    pub fn all_skipped(&self) -> u64 {
        self.skipped + self.unsampled
    }

    pub fn add(&mut self, other: Counts) {
        self.calls += other.calls;
        self.warmup += other.warmup;
        self.skipped += other.skipped;
        self.unsampled += other.unsampled;
        self.timed += other.timed;
    }
}

/// The counters of one site on one thread, and the thread's lease of warm-up calls.
///
/// Invariant: one thread writes, so a load and a store make an increment. That is a nanosecond, where
/// an atomic read-modify-write takes seven, and forty-five when threads share it.
#[repr(C, align(64))] // what a call that is not timed touches lies in one line of memory
pub(crate) struct Slot {
    calls: AtomicU64,
    unsampled: AtomicU64,
    /// So many calls from here on are not sampled.
    gap: AtomicU64,
    /// The epoch of the site in which that was drawn.
    epoch: AtomicU64,
    skipped: AtomicU64,
    warmup: AtomicU64,
    lease_context: AtomicU64,
    lease: AtomicU64,
    timed: AtomicU64, // from here on in another line
    /// The device of the lease.
    lease_device: AtomicU64,
    /// The device for which no warm-up call was left when the thread last asked.
    warm_device: AtomicU64,
    /// How many there were in all.
    warm_total: AtomicU64,
    /// The gap as it was drawn.
    drawn: AtomicU64,
    sampler: Sampler,
}

impl Slot {
    pub const fn new() -> Self {
        Slot {
            calls: AtomicU64::new(0),
            unsampled: AtomicU64::new(0),
            gap: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            warmup: AtomicU64::new(0),
            lease_context: AtomicU64::new(0),
            lease: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            lease_device: AtomicU64::new(0),
            warm_device: AtomicU64::new(0),
            warm_total: AtomicU64::new(0),
            drawn: AtomicU64::new(0),
            sampler: Sampler::new(),
        }
    }

    /// Counts one call.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        bump(&self.calls);
        bump(match outcome {
            Outcome::Warmup => &self.warmup,
            Outcome::Skipped => &self.skipped,
            Outcome::Unsampled => &self.unsampled,
            Outcome::Timed => &self.timed,
        });
    }

    /// Counts a call that is not sampled, if that is decided, and was in this epoch.
    #[inline]
    pub fn pass_over(&self, epoch: u32) -> bool {
        let left = self.gap.load(Relaxed);
        if left == 0 || self.epoch.load(Relaxed) != u64::from(epoch) {
            return false;
        }
        self.gap.store(left - 1, Relaxed);
        self.count(Outcome::Unsampled);
        true
    }

    /// How many calls it is with this one since the last that was decided about by itself.
    pub fn decided(&self) -> u64 {
        1 + self.drawn.load(Relaxed).saturating_sub(self.gap.load(Relaxed))
    }

    /// Decides whether the call is timed, and gives its weight if so; else counts it. At most `longest`
    /// that follow are passed over, and none in another epoch.
    pub fn draw(&self, sampling: Sampling, epoch: u32, longest: u64) -> Option<f32> {
        let left = self.gap.load(Relaxed);
        if left > 0 {
            self.sampler.cut(left);
        }
        let drawn = self.sampler.draw(sampling, longest);
        self.gap.store(drawn.skips, Relaxed);
        self.drawn.store(drawn.skips, Relaxed);
        self.epoch.store(u64::from(epoch), Relaxed);
        if drawn.weight.is_none() {
            self.count(Outcome::Unsampled);
        }
        drawn.weight
    }

    /// What was sampled, and of how many calls.
    pub fn population(&self) -> Population {
        population(&self.sampler, self.read())
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

    /// Whether nothing was left to lease for `device`, of so many in all. What is used up stays so.
    pub fn is_warm(&self, device: u32, total: u32) -> bool {
        self.warm_device.load(Relaxed) == u64::from(device)
            && self.warm_total.load(Relaxed) >= u64::from(total)
    }

    /// Remembers that nothing is left to lease for `device`, of so many in all.
    pub fn set_warm(&self, device: u32, total: u32) {
        self.warm_device.store(u64::from(device), Relaxed);
        self.warm_total.store(u64::from(total), Relaxed);
    }

    /// Gives up what is left of the lease, if it is on this device, or on whatever one: its device, and
    /// how many calls.
    pub fn take_lease(&self, device: Option<u32>) -> Option<(u32, u32)> {
        let (of, left) = (self.lease_device.load(Relaxed) as u32, self.lease.load(Relaxed));
        if left == 0 || device.is_some_and(|device| device != of) {
            return None;
        }
        self.lease.store(0, Relaxed);
        Some((of, left as u32))
    }

    /// Whether a lease, of whatever context, has calls left.
    pub fn has_lease(&self) -> bool {
        self.lease.load(Relaxed) > 0
    }

    /// Keeps a lease of `calls` warm-up calls on `device` for `context`; there must be none left.
    pub fn set_lease(&self, context: usize, device: u32, calls: u32) {
        self.lease_context.store(context as u64, Relaxed);
        self.lease_device.store(u64::from(device), Relaxed);
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
        Counts { calls: counts.sum(), ..counts }
    }

    fn read_once(&self) -> Counts {
        Counts {
            warmup: self.warmup.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            unsampled: self.unsampled.load(Relaxed),
            timed: self.timed.load(Relaxed),
            calls: self.calls.load(Relaxed),
        }
    }
}

#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// The population that a sampler and counts come to.
fn population(sampler: &Sampler, counts: Counts) -> Population {
    let mut population = sampler.population(counts.unsampled);
    // The others were timed while every call was.
    population.add_unasked((counts.timed + counts.warmup).saturating_sub(sampler.sampled()));
    population
}

/// The same counters where several threads write.
pub(crate) struct SharedCounts {
    calls: AtomicU64,
    warmup: AtomicU64,
    skipped: AtomicU64,
    unsampled: AtomicU64,
    timed: AtomicU64,
    sampler: Mutex<Sampler>,
}

impl SharedCounts {
    pub const fn new() -> Self {
        SharedCounts {
            calls: AtomicU64::new(0),
            warmup: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            unsampled: AtomicU64::new(0),
            timed: AtomicU64::new(0),
            sampler: Mutex::new(Sampler::new()),
        }
    }

    /// Decides whether a call is timed, and gives its weight if so; else counts it.
    pub fn draw(&self, sampling: Sampling) -> Option<f32> {
        let weight = locked(&self.sampler).draw(sampling, 0).weight;
        if weight.is_none() {
            self.count(Outcome::Unsampled);
        }
        weight
    }

    /// What was sampled, and of how many calls.
    pub fn population(&self) -> Population {
        population(&locked(&self.sampler), self.read())
    }

    pub fn count(&self, outcome: Outcome) {
        self.calls.fetch_add(1, Relaxed);
        match outcome {
            Outcome::Warmup => &self.warmup,
            Outcome::Skipped => &self.skipped,
            Outcome::Unsampled => &self.unsampled,
            Outcome::Timed => &self.timed,
        }
        .fetch_add(1, Relaxed);
    }

    pub fn read(&self) -> Counts {
        Counts {
            warmup: self.warmup.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            unsampled: self.unsampled.load(Relaxed),
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
        let slot = Slot::new();
        std::thread::scope(|s| {
            let writer = s.spawn(|| {
                for i in 0..200_000u32 {
                    slot.count(match i % 4 {
                        0 => Outcome::Warmup,
                        1 => Outcome::Skipped,
                        2 => Outcome::Unsampled,
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

    /// Where calls become rare, those that were passed over while they were many would take for ever.
    #[test]
    fn a_gap_ends_with_its_epoch() {
        let share = |share| Sampling::of_share(share).unwrap();
        let slot = Slot::new();
        assert_eq!(slot.draw(share(0.0), 0, 64), None);
        assert!(slot.pass_over(0) && slot.pass_over(0));
        assert!(!slot.pass_over(1));
        assert_eq!(slot.decided(), 3);
        assert_eq!(slot.draw(share(1.0), 1, 64), Some(1.0));
        let counts = slot.read();
        assert_eq!((counts.calls, counts.unsampled, slot.decided()), (3, 3, 1));
    }

    #[test]
    fn a_count_goes_on_over_epochs() {
        let slot = Slot::new();
        let is_timed = |call: u32| {
            let epoch = call / 5;
            !slot.pass_over(epoch) && slot.draw(Sampling::every(7), epoch, 64).is_some()
        };
        let timed: Vec<u32> = (1..=50).filter(|call| is_timed(*call)).collect();
        assert_eq!(timed, [7, 14, 21, 28, 35, 42, 49]);
    }

    #[test]
    fn a_lease_serves_its_own_context_only() {
        let slot = Slot::new();
        slot.set_lease(7, 1, 2);
        assert!(!slot.use_lease(8));
        assert!(slot.use_lease(7));
        assert_eq!(slot.take_lease(Some(2)), None);
        assert_eq!(slot.take_lease(Some(1)), Some((1, 1)));
        assert_eq!(slot.take_lease(None), None);
        assert!(!slot.use_lease(7));
    }
}
