//! Warm-up calls of a site, counted by device and key.

use crate::base::lock::{Mutex, Rank, locked};
use crate::types::device::DeviceId;
use crate::types::key::SeriesKey;

/// Warm-up calls that were made, or are leased to threads.
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

    /// Takes up to `most` of the warm-up calls that are left of `total`. When few are left it hands
    /// out fewer, so that threads do not reserve calls that others could make.
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

    /// Gives back calls that were taken and not made.
    pub fn give_back(&self, device: DeviceId, key: SeriesKey, calls: u32) {
        let mut warmups = locked(&self.0);
        let is_same = |warmup: &&mut Warmup| warmup.device == device && warmup.key == key;
        if let Some(warmup) = warmups.iter_mut().find(is_same) {
            warmup.calls = warmup.calls.saturating_sub(calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
