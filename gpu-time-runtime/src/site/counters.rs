//! A site's call counters and warm-up calls, and the calls that a thread skips without further
//! checks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::increment::increment;
#[cfg(test)]
use crate::base::lock::MutexGuard;
use crate::base::lock::{Mutex, Rank, locked};
use crate::stats::sampling::{Population, Sampler};
use crate::types::{device::DeviceId, key::SeriesKey, sampling::Sampling};

/// The outcome of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A warm-up call.
    Warmup,
    /// Timing was switched off, the filter excluded the function, or the call could not be timed.
    Skipped,
    /// Not selected by sampling.
    Unsampled,
    /// Timed. The call gives a sample or is counted as lost.
    Timed,
}

/// Calls by outcome. Their sum is the total number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub warmup: u64,
    pub skipped: u64,
    pub unsampled: u64,
    pub timed: u64,
}

impl Counts {
    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.warmup + self.all_skipped() + self.timed
    }

    /// Returns the number of calls that were skipped for any reason, as in reports.
    pub fn all_skipped(&self) -> u64 {
        self.skipped + self.unsampled
    }

    pub fn add(&mut self, other: Counts) {
        self.warmup += other.warmup;
        self.skipped += other.skipped;
        self.unsampled += other.unsampled;
        self.timed += other.timed;
    }
}

/// Warm-up calls on one device, reserved for one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub device: DeviceId,
    pub calls: u32,
}

/// One site's counters on one thread, and its skip counter: how many of the next calls are not
/// timed, because of a sampling gap or because they are leased warm-up calls in one context.
///
/// Invariant: only one thread writes, so no atomic read-modify-write is needed, which would take
/// seven nanoseconds, or forty-five if threads contend for it. A signal handler on that thread may
/// write in between. Every call is still counted exactly, but a sampling gap or a lease may be off
/// by the handler's calls.
#[derive(Default)]
#[repr(C, align(64))] // a skipped call touches the first cache line only
pub(crate) struct CallCounters {
    skip: AtomicU64,
    /// The site's epoch at the time `skip` was set.
    skip_epoch: AtomicU64,
    /// The context of leased warm-up calls, or 0 for a sampling gap.
    skip_context: AtomicU64,
    unsampled: AtomicU64,
    warmup: AtomicU64,
    skipped: AtomicU64,
    timed: AtomicU64,
    /// The length of the last sampling gap.
    gap: AtomicU64,
    /// The device for leased warm-up calls, as a [`code`].
    skip_device: AtomicU64,
    /// Two devices that the thread has used, such as a GPU and the host. Calls that alternate between them take no
    /// lock.
    warm: [WarmKeys; 2],
    sampler: Sampler,
}

/// The keys that have no warm-up calls left on one device.
#[derive(Default)]
struct WarmKeys {
    /// The device, as a [`code`], and the number of warm-up calls to which `keys` applies.
    device: AtomicU64,
    total: AtomicU64,
    /// Keys that had none left when the thread last checked, one bit each.
    keys: [AtomicU64; 2],
}

impl CallCounters {
    /// Counts one call.
    #[inline(always)]
    pub fn count(&self, outcome: Outcome) {
        increment(match outcome {
            Outcome::Warmup => &self.warmup,
            Outcome::Skipped => &self.skipped,
            Outcome::Unsampled => &self.unsampled,
            Outcome::Timed => &self.timed,
        });
    }

    /// Counts a span. `weight` is the number of spans that it represents if it is timed, or `None` if it is not.
    #[cfg(feature = "tracing")]
    pub fn count_span(&self, weight: Option<f64>) {
        match weight {
            Some(weight) => {
                self.count(Outcome::Timed);
                self.sampler.count(weight);
            }
            None => self.count(Outcome::Unsampled),
        }
    }

    /// Sets the number of calls that a timed call represents, which was opened with some probability. `drawn` is
    /// its weight by the sampler, or `None` if the sampler was not asked.
    pub fn weigh_opened(&self, drawn: Option<f32>, weight: f64) {
        match drawn {
            Some(drawn) => self.sampler.reweigh(f64::from(drawn), weight),
            None => self.sampler.count(weight),
        }
    }

    /// Counts a call that was not chosen to be opened as not sampled, although the sampler chose it with this
    /// weight.
    pub fn take_back_drawn(&self, drawn: f32) {
        self.sampler.take_back(f64::from(drawn));
    }

    /// Returns the number of timed calls so far.
    #[inline(always)]
    pub fn timed(&self) -> u64 {
        self.timed.load(Relaxed)
    }

    /// Skips a warm-up call in this context or, for context 0, a call in a sampling gap. Returns
    /// `false` if there is no such call left to skip in this epoch.
    #[inline(always)]
    pub fn pass_over(&self, context: usize, epoch: u32) -> bool {
        let left = self.skip.load(Relaxed);
        if left == 0
            || self.skip_context.load(Relaxed) != context as u64
            || self.skip_epoch.load(Relaxed) != u64::from(epoch)
        {
            return false;
        }
        self.skip.store(left - 1, Relaxed);
        true
    }

    /// Returns the number of calls since the last draw, including the current one.
    pub fn decided(&self) -> u64 {
        1 + self.gap.load(Relaxed).saturating_sub(self.skip.load(Relaxed))
    }

    /// Decides by sampling whether to time the call, and returns its weight if so. The gap that
    /// follows has at most `longest` calls and ends with the epoch.
    pub fn draw(&self, sampling: Sampling, epoch: u32, longest: u64) -> Option<f32> {
        let left = self.skip.load(Relaxed);
        if left > 0 {
            self.sampler.cut(left);
        }
        let draw = self.sampler.draw(sampling, longest);
        self.skip.store(draw.skips, Relaxed);
        self.skip_epoch.store(u64::from(epoch), Relaxed);
        self.skip_context.store(0, Relaxed);
        self.gap.store(draw.skips, Relaxed);
        draw.weight
    }

    /// Returns the sampler's sums for these counts, including the calls that were timed without asking it.
    pub fn population(&self, counts: Counts) -> Population {
        let mut population = self.sampler.population(counts.unsampled);
        // Calls that the sampler did not decide about, because every call was timed at that point.
        let timed = counts.timed + counts.warmup;
        population.add_unasked(timed.saturating_sub(self.sampler.sampled()));
        population
    }

    /// Skips the leased warm-up calls in `context`.
    pub fn skip_warmup(&self, lease: Lease, context: usize, epoch: u32) {
        self.skip_device.store(code(lease.device), Relaxed);
        self.skip_context.store(context as u64, Relaxed);
        self.skip_epoch.store(u64::from(epoch), Relaxed);
        self.skip.store(u64::from(lease.calls), Relaxed);
    }

    /// Ends the thread's lease. Returns the remaining calls, if there are any.
    pub fn take_warmup(&self) -> Option<Lease> {
        let left = self.skip.load(Relaxed);
        if left == 0 || self.skip_context.load(Relaxed) == 0 {
            return None;
        }
        self.skip.store(0, Relaxed);
        self.gap.store(0, Relaxed);
        Some(Lease { device: device(self.skip_device.load(Relaxed)), calls: left as u32 })
    }

    /// Returns `true` if the thread knows that all `total` warm-up calls for this device and key
    /// have been used. This also holds for any smaller `total`.
    pub fn is_warm(&self, device: DeviceId, key: SeriesKey, total: u32) -> bool {
        let (word, bit) = key_bit(key);
        let warm = self.warm.iter().find(|warm| warm.device.load(Relaxed) == code(device));
        warm.is_some_and(|warm| {
            warm.total.load(Relaxed) >= u64::from(total)
                && warm.keys.get(word).is_some_and(|keys| keys.load(Relaxed) & bit != 0)
        })
    }

    /// Remembers that all `total` warm-up calls for this device and key have been used.
    pub fn set_warm(&self, device: DeviceId, key: SeriesKey, total: u32) {
        let (word, bit) = key_bit(key);
        let (device, total) = (code(device), u64::from(total));
        let is_of = |of| move |warm: &&WarmKeys| warm.device.load(Relaxed) == of;
        let known =
            self.warm.iter().find(is_of(device)).or_else(|| self.warm.iter().find(is_of(0)));
        let Some(warm) = known.or_else(|| self.warm.get(device as usize % self.warm.len())) else {
            return;
        };
        if warm.device.load(Relaxed) != device || warm.total.load(Relaxed) != total {
            warm.keys.iter().for_each(|keys| keys.store(0, Relaxed));
            warm.device.store(device, Relaxed);
            warm.total.store(total, Relaxed);
        }
        if let Some(keys) = warm.keys.get(word) {
            keys.store(keys.load(Relaxed) | bit, Relaxed);
        }
    }

    /// Reads the counters while their thread may be changing them.
    pub fn read(&self) -> Counts {
        Counts {
            warmup: self.warmup.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            unsampled: self.unsampled.load(Relaxed),
            timed: self.timed.load(Relaxed),
        }
    }
}

/// Encodes a device as a number; 0 stands for no device.
fn code(device: DeviceId) -> u64 {
    match device {
        DeviceId::Cuda(ordinal) => 3 + u64::from(ordinal),
        DeviceId::Unknown => 2,
        DeviceId::Host => 1,
    }
}

fn device(code: u64) -> DeviceId {
    match code.checked_sub(3) {
        Some(ordinal) => DeviceId::Cuda(ordinal as u32),
        None if code == 2 => DeviceId::Unknown,
        None => DeviceId::Host,
    }
}

/// Returns the word and the bit for a key in [`WarmKeys`].
fn key_bit(key: SeriesKey) -> (usize, u64) {
    let index = key.index();
    (index / 64, 1 << (index % 64))
}

/// Warm-up calls already made, or leased to threads.
pub(crate) struct Warmups(Mutex<Vec<Warmup>>);

struct Warmup {
    device: DeviceId,
    key: SeriesKey,
    calls: u32,
}

impl Warmups {
    pub const fn new() -> Self {
        Warmups(Mutex::new(Rank::Warmups, Vec::new()))
    }

    /// Takes up to `most` of the remaining warm-up calls out of `total`. Hands out fewer when few
    /// are left, so that threads do not reserve calls that others could make.
    pub fn take(&self, device: DeviceId, key: SeriesKey, total: u32, most: u32) -> u32 {
        let mut warmups = locked(&self.0);
        let at = warmups.iter().position(|w| (w.device, w.key) == (device, key));
        let at = at.unwrap_or_else(|| {
            warmups.push(Warmup { device, key, calls: 0 });
            warmups.len() - 1
        });
        let calls = &mut warmups[at].calls;
        let left = total.saturating_sub(*calls);
        let taken = left.min(most.min(left / 256).max(1));
        *calls += taken;
        taken
    }

    /// Gives back calls that were taken but not made.
    pub fn give_back(&self, device: DeviceId, key: SeriesKey, calls: u32) {
        let mut warmups = locked(&self.0);
        let is_same = |warmup: &&mut Warmup| warmup.device == device && warmup.key == key;
        if let Some(warmup) = warmups.iter_mut().find(is_same) {
            warmup.calls = warmup.calls.saturating_sub(calls);
        }
    }

    #[cfg(test)]
    pub fn lock_for_test(&self) -> MutexGuard<'_, impl Sized> {
        locked(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long gap drawn before the rate rose would leave out too many calls.
    #[test]
    fn gap_ends_with_its_epoch() {
        let share = |share| Sampling::of_share(share).unwrap();
        let counters = CallCounters::default();
        assert_eq!(counters.draw(share(0.0), 0, 64), None);
        assert!(counters.pass_over(0, 0));
        assert!(counters.pass_over(0, 0));
        assert!(!counters.pass_over(0, 1));
        assert_eq!(counters.decided(), 3);
        assert_eq!(counters.draw(share(1.0), 1, 64), Some(1.0));
        assert_eq!(counters.decided(), 1);
    }

    #[test]
    fn every_nth_call_is_timed_across_epochs() {
        let counters = CallCounters::default();
        let is_timed = |call: u32| {
            let epoch = call / 5;
            !counters.pass_over(0, epoch) && counters.draw(Sampling::every(7), epoch, 64).is_some()
        };
        let timed: Vec<u32> = (1..=50).filter(|call| is_timed(*call)).collect();
        assert_eq!(timed, [7, 14, 21, 28, 35, 42, 49]);
    }

    #[test]
    fn lease_serves_one_context_and_is_given_back() {
        let counters = CallCounters::default();
        let device = DeviceId::Cuda(1);
        counters.skip_warmup(Lease { device, calls: 3 }, 7, 5);
        assert!(counters.pass_over(7, 5));
        assert!(
            !counters.pass_over(8, 5) && !counters.pass_over(0, 5) && !counters.pass_over(7, 6)
        );
        assert_eq!(counters.take_warmup(), Some(Lease { device, calls: 2 }));
        assert_eq!(counters.take_warmup(), None);
        assert!(!counters.pass_over(7, 5));
    }

    #[test]
    fn sampling_gap_is_not_taken_for_a_lease() {
        let counters = CallCounters::default();
        assert_eq!(counters.draw(Sampling::of_share(0.0).unwrap(), 0, 64), None);
        assert_eq!(counters.take_warmup(), None);
        assert!(counters.pass_over(0, 0));
    }

    #[test]
    fn warm_keys_are_valid_for_their_device_and_total() {
        let counters = CallCounters::default();
        let (device, keys) = (DeviceId::Cuda(0), [SeriesKey::NONE, SeriesKey::OTHER]);
        for key in keys {
            assert!(!counters.is_warm(device, key, 10));
            counters.set_warm(device, key, 10);
            assert!(counters.is_warm(device, key, 10) && counters.is_warm(device, key, 9));
        }
        assert!(!counters.is_warm(device, keys[0], 11));
        assert!(!counters.is_warm(DeviceId::Host, keys[0], 10));
        counters.set_warm(DeviceId::Host, keys[1], 10);
        assert!(counters.is_warm(DeviceId::Host, keys[1], 10));
        assert!(!counters.is_warm(DeviceId::Host, keys[0], 10));
        assert!(counters.is_warm(device, keys[1], 10), "calls may alternate between devices");
        counters.set_warm(device, keys[1], 11);
        assert!(counters.is_warm(device, keys[1], 11) && !counters.is_warm(device, keys[0], 10));
    }

    #[test]
    fn warm_keys_of_many_devices_replace_each_other() {
        let counters = CallCounters::default();
        let devices = || (0..9).map(DeviceId::Cuda);
        for device in devices() {
            counters.set_warm(device, KEY, 10);
            assert!(counters.is_warm(device, KEY, 10));
        }
        assert_eq!(devices().filter(|device| counters.is_warm(*device, KEY, 10)).count(), 2);
    }

    const KEY: SeriesKey = SeriesKey::NONE;

    #[test]
    fn each_device_and_key_has_its_own_warmup() {
        let warmups = Warmups::new();
        for (device, key) in [
            (DeviceId::Cuda(0), KEY),
            (DeviceId::Cuda(1), KEY),
            (DeviceId::Cuda(0), SeriesKey::OTHER),
        ] {
            let taken: u32 = (0..5).map(|_| warmups.take(device, key, 3, 1)).sum();
            assert_eq!(taken, 3);
        }
    }

    #[test]
    fn last_calls_are_handed_out_singly() {
        let warmups = Warmups::new();
        assert_eq!(warmups.take(DeviceId::Host, KEY, 100_000, 64), 64);
        assert_eq!(warmups.take(DeviceId::Host, KEY, 500, 64), 1);
    }

    #[test]
    fn returned_calls_are_taken_again() {
        let warmups = Warmups::new();
        assert_eq!(warmups.take(DeviceId::Host, KEY, 600, 64), 2);
        warmups.give_back(DeviceId::Host, KEY, 1);
        let taken: u32 = (0..700).map(|_| warmups.take(DeviceId::Host, KEY, 600, 1)).sum();
        assert_eq!(taken, 599);
    }
}
