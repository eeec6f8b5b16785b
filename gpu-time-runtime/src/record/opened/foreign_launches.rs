//! Launches outside of opened calls, by any thread, while CUPTI records. No call claims their records.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of launches that are known. CUPTI numbers the calls to the driver one by one, so the record of a
/// launch is usually taken before as many calls have followed. If not, it may be kept in vain.
const SLOTS: usize = 1 << 20;

/// Holds each launch by its correlation id, until another one needs its slot.
static LAUNCHES: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];

/// Adds a launch. Called from CUPTI's callback, so it takes no lock and allocates nothing.
pub(super) fn add(correlation: u32) {
    slot(correlation).store(correlation, Relaxed);
}

/// Removes a launch, because an opened call made it.
pub(super) fn remove(correlation: u32) {
    // No id of this slot.
    slot(correlation).store(!correlation, Relaxed);
}

/// Returns `true` if no opened call made this launch. `false` if that is not known.
pub(super) fn contains(correlation: u32) -> bool {
    slot(correlation).load(Relaxed) == correlation
}

fn slot(correlation: u32) -> &'static AtomicU32 {
    &LAUNCHES[correlation as usize % SLOTS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_is_known_until_another_one_takes_its_slot() {
        // Far from the ids of other tests.
        let (first, next) = (3_000_000_001, 3_000_000_001 + SLOTS as u32);
        add(first);
        add(first + 1);
        assert!(contains(first) && contains(first + 1) && !contains(next));
        remove(first);
        assert!(!contains(first) && !contains(next));
        add(first);
        add(next);
        assert!(!contains(first) && contains(next));
    }
}
