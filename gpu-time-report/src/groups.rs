//! Groups rows for the table and the page. A function and its launches form a group.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::figure::Figure;
use crate::largest::sort_by_largest;
use crate::own_times::Shares;
use crate::row::Row;
use crate::{CacheState, Series, Site, series};

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

/// Returns the groups in a report: those of the functions with the most own time first, then those with the longest total.
/// Of a function, those with the largest share come first. A function without samples may have a path in the tree.
pub fn of<'a>(analysis: &Analysis<'a>) -> Vec<Group<'a>> {
    let Analysis { snapshot, shares, .. } = analysis;
    let share = |group: &Group| group.share(shares).map_or(-1.0, |share| share.value);
    let mut in_tree = HashMap::<usize, f64>::new();
    for node in &snapshot.tree {
        let longest = node.site.map(|site| in_tree.entry(site).or_default());
        longest.into_iter().for_each(|ns| *ns = ns.max(node.inclusive_ns));
    }
    let total = |groups: &Vec<Group>| match groups.iter().map(Group::total).sum() {
        0.0 => groups.first().and_then(|first| in_tree.get(&first.at)).copied().unwrap_or_default(),
        ns => ns,
    };
    let both = |one: f64, other: f64| {
        if one.min(other) < 0.0 { one.max(other) } else { one + other }
    };
    let own = |groups: &Vec<Group>| groups.iter().map(share).reduce(both).unwrap_or(-1.0);
    let sites = snapshot.sites.iter().enumerate();
    let mut functions: Vec<Vec<Group>> = sites.map(|(at, site)| of_site(at, site)).collect();
    for groups in &mut functions {
        sort_by_largest(groups, Group::total);
        sort_by_largest(groups, share);
        groups.iter_mut().take(1).for_each(|first| first.has_calls = true);
    }
    sort_by_largest(&mut functions, total);
    sort_by_largest(&mut functions, own);
    functions.into_iter().flatten().collect()
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

impl<'a> Group<'a> {
    /// Returns the row of the function, or that of one of its launches.
    pub fn row(&self, launch: Option<&'a Series>, shares: &Shares) -> Row<'a> {
        let row = match launch.or(self.head) {
            Some(series) => Row::of_series((self.at, self.site), series, shares, String::new()),
            None => Row::of(self.site, &[], String::new()),
        };
        let has_calls = self.has_calls && launch.is_none();
        Row { calls: has_calls.then_some(self.site.calls), ..row }
    }

    /// Returns the share of its first row that has one.
    pub fn share(&self, shares: &Shares) -> Option<Figure> {
        let mut rows = self.head.iter().chain(&self.launches);
        rows.find_map(|series| shares.of_row(self.at, series))
    }

    /// Returns the time used for sorting groups.
    pub fn total(&self) -> f64 {
        let launches = || series::total(self.launches.iter().copied());
        self.head.map_or_else(launches, |head| head.total().unwrap_or_default())
    }
}
