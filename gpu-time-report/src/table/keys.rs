//! Keys of a function that the table leaves to the other renderings.

use std::collections::HashSet;

use crate::Series;
use crate::groups::Group;
use crate::series;

/// The number of keys that the table shows per function.
const SHOWN: usize = 8;

/// The keys of one function that the table leaves out: all but those with the longest totals.
pub struct HiddenKeys<'a>(HashSet<&'a str>);

impl<'a> HiddenKeys<'a> {
    /// Decides from the groups of one function, in their order.
    pub fn of(groups: &[Group<'a>]) -> HiddenKeys<'a> {
        let heads = groups.iter().filter_map(|group| group.head).map(|head| head.series);
        // Launches that were only captured have no group of their own.
        let captured = groups.iter().filter(|group| group.head.is_none());
        let mut captured: Vec<&Series> =
            captured.flat_map(|group| &group.launches).map(|row| row.series).collect();
        let total = |series: &&Series| series.total().unwrap_or_default();
        captured.sort_by(|a, b| total(b).total_cmp(&total(a)));
        let mut seen = HashSet::new();
        let mut keys: Vec<&str> =
            heads.chain(captured).filter_map(Series::key).filter(|key| seen.insert(*key)).collect();
        // A line "1 more key" would be no shorter than the key itself.
        let hidden = if keys.len() > SHOWN + 1 { keys.split_off(SHOWN) } else { Vec::new() };
        HiddenKeys(hidden.into_iter().collect())
    }

    /// Returns the number of keys that are left out.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the series has one of these keys.
    pub fn has(&self, series: &Series) -> bool {
        series.key().is_some_and(|key| self.0.contains(key))
    }

    /// Returns the number of samples of the calls with these keys, and their total time.
    pub fn sum(&self, groups: &[Group]) -> (u64, f64) {
        let heads = || {
            let heads = groups.iter().filter_map(|group| group.head).map(|head| head.series);
            heads.filter(|series| self.has(series))
        };
        (series::saturating_sum(heads().map(|series| series.measured)), series::total(heads()))
    }
}
