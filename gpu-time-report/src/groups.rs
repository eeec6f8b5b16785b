//! How rows are shown: a function and its launches are a group, and groups stand in the order of their
//! totals.

use std::collections::HashSet;

use crate::{CacheState, Series, Site, Snapshot, series};

/// A function on one device in one cache state, and its launches.
pub struct Group<'a> {
    /// Its place in the report.
    pub site: usize,
    /// The function's own series. One whose calls were all captured has none.
    pub head: Option<Row<'a>>,
    /// What its calls launched.
    pub launches: Vec<Row<'a>>,
    /// Calls are counted by function, so they stand once.
    pub has_calls: bool,
}

/// A series, and where it stands in its site.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// The place.
    #[cfg_attr(not(feature = "html"), expect(dead_code, reason = "only the page refers to it"))]
    pub at: usize,
    /// The series.
    pub series: &'a Series,
}

/// The groups of a report, the one that took the most first.
pub fn of(snapshot: &Snapshot) -> Vec<Group<'_>> {
    let sites = snapshot.sites.iter().enumerate();
    let mut groups: Vec<Group> = sites.flat_map(|(at, site)| of_site(at, site)).collect();
    groups.sort_by(|a, b| b.total().total_cmp(&a.total()));
    let mut seen = HashSet::new();
    groups.iter_mut().for_each(|group| group.has_calls = seen.insert(group.site));
    groups
}

/// The groups of a site that was called.
fn of_site<'a>(at: usize, site: &'a Site) -> Vec<Group<'a>> {
    let rows = || site.series.iter().enumerate().map(|(at, series)| Row { at, series });
    let group = |head| Group { site: at, head, launches: Vec::new(), has_calls: false };
    let heads = rows().filter(|row| row.series.launch.is_none());
    let mut groups: Vec<Group> = heads.map(|row| group(Some(row))).collect();
    for row in rows().filter(|row| row.series.launch.is_some()) {
        let is_its = |group: &&mut Group| {
            group
                .head
                .is_some_and(|head| !row.series.graph && is_launch_of(row.series, head.series))
        };
        match groups.iter_mut().find(is_its) {
            Some(group) => group.launches.push(row),
            None => match groups.iter_mut().find(|group| group.head.is_none()) {
                Some(headless) => headless.launches.push(row),
                None => groups.push(Group { launches: vec![row], ..group(None) }),
            },
        }
    }
    if groups.is_empty() && site.calls > 0 {
        groups.push(group(None));
    }
    groups
}

/// Whether the launch was made by calls of this series: the launches after the first of a cold call
/// run after it.
fn is_launch_of(launch: &Series, calls: &Series) -> bool {
    let is_cold = calls.cache != CacheState::AsFound;
    let cache = launch.cache == calls.cache || (is_cold && launch.cache == CacheState::AfterCold);
    cache && launch.device == calls.device && launch.key == calls.key
}

impl Group<'_> {
    /// What orders the groups.
    fn total(&self) -> f64 {
        let launches = || series::total(self.launches.iter().map(|row| row.series));
        self.head.map_or_else(launches, |head| head.series.total().unwrap_or_default())
    }
}
