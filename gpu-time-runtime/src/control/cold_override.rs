//! What a run of `until_stable` wants of the L2, over what the sites say, for the whole process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches::SWITCHES;
use crate::types::attribute::Cold;

/// The wishes of all runs under way, the one that began last on top.
static WISHES: Mutex<Vec<(u64, Option<Cold>)>> = Mutex::new(Rank::ColdOverrides, Vec::new());

const NONE: u8 = 0;
const AS_FOUND: u8 = 1;
const CLEAN: u8 = 2;
const DIRTY: u8 = 3;

/// Whether the sites have a say.
#[inline]
pub(crate) fn is_none() -> bool {
    SWITCHES.cold_override.load(Relaxed) == NONE
}

/// Whether and how the L2 is emptied for a site that wants `cold`.
pub(crate) fn apply(cold: Option<Cold>) -> Option<Cold> {
    match SWITCHES.cold_override.load(Relaxed) {
        AS_FOUND => None,
        CLEAN => Some(Cold::Clean),
        DIRTY => Some(Cold::Dirty),
        _ => cold,
    }
}

/// A wish that rules until it is dropped, or until a later one does.
#[must_use]
pub(crate) struct ColdOverride(u64);

impl ColdOverride {
    /// From here on the L2 is emptied in this way, or not at all, whatever the sites say.
    pub fn begin(cold: Option<Cold>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Relaxed);
        change(|wishes| wishes.push((id, cold)));
        ColdOverride(id)
    }
}

impl Drop for ColdOverride {
    fn drop(&mut self) {
        change(|wishes| wishes.retain(|(id, _)| *id != self.0));
    }
}

fn change(how: impl FnOnce(&mut Vec<(u64, Option<Cold>)>)) {
    let mut wishes = locked(&WISHES);
    how(&mut wishes);
    let ruling = match wishes.last() {
        None => NONE,
        Some((_, None)) => AS_FOUND,
        Some((_, Some(Cold::Clean))) => CLEAN,
        Some((_, Some(Cold::Dirty))) => DIRTY,
    };
    SWITCHES.cold_override.store(ruling, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    // All in one test: what rules, rules in the whole process.
    #[test]
    fn the_run_that_began_last_rules_until_it_ends() {
        let site = Some(Cold::Dirty);
        assert!(is_none());
        assert_eq!((apply(site), apply(None)), (site, None));

        let outer = ColdOverride::begin(None);
        assert!(!is_none());
        assert_eq!((apply(site), apply(None)), (None, None));
        let inner = ColdOverride::begin(Some(Cold::Clean));
        assert_eq!((apply(site), apply(None)), (Some(Cold::Clean), Some(Cold::Clean)));
        let last = ColdOverride::begin(Some(Cold::Dirty));
        // On two threads, the earlier one may end first.
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
