//! The keys of a function that the table leaves to the other renderings.

use std::collections::HashSet;

use crate::Series;
use crate::groups::Group;
use crate::series;

/// How many keys of a function are shown.
const SHOWN: usize = 8;

/// Those of one function that are not shown: all but the ones that took the most.
pub struct Hidden<'a>(HashSet<&'a str>);

impl<'a> Hidden<'a> {
    /// From the groups of one function, in their order.
    pub fn of(groups: &[Group<'a>]) -> Hidden<'a> {
        let heads = groups.iter().filter_map(|group| group.head).map(|head| head.series);
        // What was only captured is in no group of its own.
        let captured = groups.iter().filter(|group| group.head.is_none());
        let mut captured: Vec<&Series> =
            captured.flat_map(|group| &group.launches).map(|row| row.series).collect();
        let total = |series: &&Series| series.total().unwrap_or_default();
        captured.sort_by(|a, b| total(b).total_cmp(&total(a)));
        let mut seen = HashSet::new();
        let mut keys: Vec<&str> =
            heads.chain(captured).filter_map(Series::key).filter(|key| seen.insert(*key)).collect();
        // One more key is no longer than to say so.
        let hidden = if keys.len() > SHOWN + 1 { keys.split_off(SHOWN) } else { Vec::new() };
        Hidden(hidden.into_iter().collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the row is one of them.
    pub fn has(&self, series: &Series) -> bool {
        series.key().is_some_and(|key| self.0.contains(key))
    }

    /// The samples of their calls, and what these took.
    pub fn sum(&self, groups: &[Group]) -> (u64, f64) {
        let heads = || {
            let heads = groups.iter().filter_map(|group| group.head).map(|head| head.series);
            heads.filter(|series| self.has(series))
        };
        (series::saturating_sum(heads().map(|series| series.measured)), series::total(heads()))
    }
}
