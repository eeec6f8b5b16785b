//! The cache state requested by an `until_stable` run, which replaces the state set by attributes.

use std::sync::atomic::Ordering::Relaxed;

use crate::base::fork;
use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches::SWITCHES;
use crate::types::attribute::Cold;

/// The requests from all runs in progress, by id. The latest one is last.
static REQUESTS: Mutex<Vec<(u64, Option<Cold>)>> = Mutex::new(Rank::ColdOverrides, Vec::new());

/// What the switch stands for.
const OVERRIDES: [Option<Option<Cold>>; 4] =
    [None, Some(None), Some(Some(Cold::Clean)), Some(Some(Cold::Dirty))];

/// Returns `true` if no run overrides the attributes.
#[inline]
pub(crate) fn is_none() -> bool {
    SWITCHES.cold_override.load(Relaxed) == 0
}

/// Returns how the L2 is evicted, if at all, for a function whose attribute sets `cold`.
pub(crate) fn apply(cold: Option<Cold>) -> Option<Cold> {
    let switch = usize::from(SWITCHES.cold_override.load(Relaxed));
    OVERRIDES.get(switch).copied().flatten().unwrap_or(cold)
}

/// A request that applies until it is dropped or a later one begins.
#[must_use]
pub(crate) struct ColdOverride(u64);

impl ColdOverride {
    /// Makes all timed calls evict the L2 in this way, or not at all.
    pub fn begin(cold: Option<Cold>) -> Self {
        ColdOverride(change(|requests| {
            let id = requests.last().map_or(0, |(latest, _)| latest + 1);
            requests.push((id, cold));
            id
        }))
    }
}

impl Drop for ColdOverride {
    fn drop(&mut self) {
        if !fork::is_forked() {
            change(|requests| requests.retain(|(id, _)| *id != self.0));
        }
    }
}

fn change<R>(how: impl FnOnce(&mut Vec<(u64, Option<Cold>)>) -> R) -> R {
    let mut requests = locked(&REQUESTS);
    let result = how(&mut requests);
    let latest = requests.last().map(|(_, cold)| *cold);
    let switch = OVERRIDES.iter().position(|cold| *cold == latest).unwrap_or_default();
    SWITCHES.cold_override.store(switch as u8, Relaxed);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    // A single test, because the override applies to the whole process.
    #[test]
    fn latest_run_prevails_until_it_ends() {
        let site = Some(Cold::Dirty);
        assert!(is_none());
        assert_eq!((apply(site), apply(None)), (site, None));

        let outer = ColdOverride::begin(None);
        assert!(!is_none());
        assert_eq!((apply(site), apply(None)), (None, None));
        let inner = ColdOverride::begin(Some(Cold::Clean));
        assert_eq!((apply(site), apply(None)), (Some(Cold::Clean), Some(Cold::Clean)));
        let last = ColdOverride::begin(Some(Cold::Dirty));
        // With runs on two threads, the earlier one may end first.
        drop(inner);
        assert_eq!(apply(None), Some(Cold::Dirty));
        drop(last);
        assert_eq!(apply(site), None);

        let unwound = std::panic::catch_unwind(|| {
            let _run = ColdOverride::begin(Some(Cold::Clean));
            panic!("the closure panics");
        });
        assert!(unwound.is_err());
        assert_eq!(apply(site), None);
        drop(outer);
        assert!(is_none());
        assert_eq!(apply(site), site);
    }
}
