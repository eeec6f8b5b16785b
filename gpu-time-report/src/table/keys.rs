//! Keys of a function that the table omits. Other renderings contain them.

use std::collections::HashSet;

use crate::Series;
use crate::groups::Group;

/// One function's keys that the table omits: all but those with the longest totals.
pub struct HiddenKeys<'a>(HashSet<&'a str>);

impl<'a> HiddenKeys<'a> {
    /// Selects the keys of one function's groups beyond the first `most`.
    pub fn of(groups: &[Group<'a>], most: usize) -> HiddenKeys<'a> {
        let heads = groups.iter().filter_map(|group| group.head);
        // Launches that were only captured have no head with a key.
        let captured = groups.iter().filter(|group| group.head.is_none());
        let mut captured: Vec<&Series> =
            captured.flat_map(|group| &group.launches).copied().collect();
        let total = |series: &&Series| series.total().unwrap_or_default();
        captured.sort_by(|a, b| total(b).total_cmp(&total(a)));
        let mut seen = HashSet::new();
        let mut keys: Vec<&str> = heads
            .chain(captured)
            .filter_map(|series| series.key.as_deref())
            .filter(|key| seen.insert(*key))
            .collect();
        // A row "1 more key" would be no shorter than the key itself.
        let hidden = if keys.len() > most + 1 { keys.split_off(most) } else { Vec::new() };
        HiddenKeys(hidden.into_iter().collect())
    }

    /// Returns the number of omitted keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the series has one of these keys.
    pub fn has(&self, series: &Series) -> bool {
        series.key.as_deref().is_some_and(|key| self.0.contains(key))
    }
}
