//! Brackets during which CUPTI recorded for another thread: an opened call, or a window.
//!
//! The GPU then takes up to 0.3 µs longer for the work between the two events. Such a bracket counts as starved, so
//! that its time is an upper bound. In a program whose other threads record all the time, that would leave no fed
//! brackets. In that case, they stay fed, and the error of the bias covers the difference instead.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::cupti;

/// The number of disturbed brackets that count as starved in any case.
const MIN_DISTURBED: u64 = 32;

/// The maximum number of undisturbed brackets that are counted before the first disturbed one. From then on, a
/// program that records nothing only reads the counter, because all threads share it.
const MAX_UNDISTURBED: u64 = 65_536;

/// Counts of brackets that were otherwise fed.
struct FedBrackets {
    undisturbed: AtomicU64,
    disturbed: AtomicU64,
    /// A disturbed bracket has stayed fed.
    have_kept: AtomicBool,
}

static FED: FedBrackets = FedBrackets::new();

/// Counts a fed bracket. Returns `true` if it is to count as starved.
#[inline]
pub(super) fn spoils(is_disturbed: bool) -> bool {
    // A CUPTI version that never stops recording disturbs all brackets, which the error of the bias covers.
    cfg!(feature = "kernels") && FED.spoils(is_disturbed) && !cupti::never_stops()
}

/// Returns `true` if the samples of any series include disturbed brackets that count as fed.
pub(crate) fn is_in_samples() -> bool {
    FED.have_kept.load(Relaxed)
}

impl FedBrackets {
    const fn new() -> FedBrackets {
        FedBrackets {
            undisturbed: AtomicU64::new(0),
            disturbed: AtomicU64::new(0),
            have_kept: AtomicBool::new(false),
        }
    }

    #[inline]
    fn spoils(&self, is_disturbed: bool) -> bool {
        if !is_disturbed {
            let undisturbed = self.undisturbed.load(Relaxed);
            if undisturbed < MAX_UNDISTURBED || self.disturbed.load(Relaxed) > 0 {
                self.undisturbed.fetch_add(1, Relaxed);
            }
            return false;
        }
        let disturbed = self.disturbed.fetch_add(1, Relaxed) + 1;
        let are_few = disturbed <= MIN_DISTURBED.max(self.undisturbed.load(Relaxed));
        if !are_few {
            self.have_kept.store(true, Relaxed);
        }
        are_few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoilt(fed: &FedBrackets, is_disturbed: bool, times: u64) -> u64 {
        (0..times).map(|_| u64::from(fed.spoils(is_disturbed))).sum()
    }

    #[test]
    fn few_disturbed_brackets_are_starved() {
        let fed = FedBrackets::new();
        assert_eq!(spoilt(&fed, true, 10), 10);
        assert_eq!(spoilt(&fed, false, 100), 0);
        assert_eq!(spoilt(&fed, true, 90), 90);
        assert!(!fed.have_kept.load(Relaxed));
    }

    #[test]
    fn most_brackets_stay_fed_though_disturbed() {
        let fed = FedBrackets::new();
        assert_eq!(spoilt(&fed, false, 10), 0);
        assert_eq!(spoilt(&fed, true, 1_000), MIN_DISTURBED);
        assert!(fed.have_kept.load(Relaxed));
    }

    #[test]
    fn undisturbed_brackets_are_counted_once_one_is_disturbed() {
        let fed = FedBrackets::new();
        spoilt(&fed, false, MAX_UNDISTURBED + 10);
        assert_eq!(fed.undisturbed.load(Relaxed), MAX_UNDISTURBED);
        assert_eq!(spoilt(&fed, true, 1), 1);
        spoilt(&fed, false, 10);
        assert_eq!(fed.undisturbed.load(Relaxed), MAX_UNDISTURBED + 10);
    }
}
