//! Groups rows for the table and the page. A function and its launches form a group.

use std::collections::HashMap;

use crate::largest::sort_by_largest;
use crate::{CacheState, Series, Site, Snapshot, series};

/// A function, with its launches, on one device, in one cache state and with one key.
pub struct Group<'a> {
    /// The site's index in the report.
    pub at: usize,
    pub site: &'a Site,
    /// The function's own series. `None` if every call was captured, or none was timed.
    pub head: Option<&'a Series>,
    /// The launches made by the function's calls.
    pub launches: Vec<&'a Series>,
    /// Set for the first group of a function, which shows the number of calls. Calls are counted
    /// per function, not per device or cache state.
    pub has_calls: bool,
}

/// Returns the groups in a report, longest total first. Those of one function follow its longest. A function without
/// samples may have a path in the tree.
pub fn of(snapshot: &Snapshot) -> Vec<Group<'_>> {
    let mut in_tree = HashMap::<usize, f64>::new();
    for node in &snapshot.tree {
        let longest = node.site.map(|site| in_tree.entry(site).or_default());
        longest.into_iter().for_each(|ns| *ns = ns.max(node.inclusive_ns));
    }
    let total = |group: &Group<'_>| match group.total() {
        0.0 => in_tree.get(&group.at).copied().unwrap_or_default(),
        ns => ns,
    };
    let sites = snapshot.sites.iter().enumerate();
    sorted(sites.flat_map(|(at, site)| of_site(at, site)).collect(), total)
}

/// Sorts groups, largest value first. Those of one function follow its largest, and those with equal
/// values keep their order.
pub fn sorted<'a>(mut groups: Vec<Group<'a>>, value: impl Fn(&Group<'a>) -> f64) -> Vec<Group<'a>> {
    sort_by_largest(&mut groups, value);
    let mut places = HashMap::new();
    for (place, group) in groups.iter_mut().enumerate() {
        let first = *places.entry(group.at).or_insert(place);
        group.has_calls = first == place;
    }
    groups.sort_by_key(|group| places[&group.at]);
    groups
}

/// Returns the groups for one site. There are none if it was never called.
fn of_site(at: usize, site: &Site) -> Vec<Group<'_>> {
    let group = |head| Group { at, site, head, launches: Vec::new(), has_calls: false };
    let mut groups: Vec<Group> = site.heads().map(|series| group(Some(series))).collect();
    for launch in site.series.iter().filter(|series| series.launch.is_some()) {
        let owns = |group: &&mut Group| {
            let head = group.head.filter(|_| !launch.graph);
            head.is_some_and(|head| is_launch_of(launch, head))
        };
        match groups.iter_mut().find(owns) {
            Some(group) => group.launches.push(launch),
            None => match groups.iter_mut().find(|group| group.head.is_none()) {
                Some(headless) => headless.launches.push(launch),
                None => groups.push(Group { launches: vec![launch], ..group(None) }),
            },
        }
    }
    if groups.is_empty() && site.calls > 0 {
        groups.push(group(None));
    }
    groups
}

/// Returns `true` if the launch was made by this series' calls. The later launches of a cold call
/// run in the `after-cold` state.
fn is_launch_of(launch: &Series, calls: &Series) -> bool {
    let is_cold = calls.cache != CacheState::AsFound;
    let cache = launch.cache == calls.cache || (is_cold && launch.cache == CacheState::AfterCold);
    cache && launch.device == calls.device && launch.key == calls.key
}

impl Group<'_> {
    /// Returns the time used for sorting groups.
    pub fn total(&self) -> f64 {
        let launches = || series::total(self.launches.iter().copied());
        self.head.map_or_else(launches, |head| head.total().unwrap_or_default())
    }
}
