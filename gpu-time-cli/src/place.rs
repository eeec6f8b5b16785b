//! Which functions and series of two reports are the same.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::{CacheState, Clock, Measure, Series, Site};

/// What tells the series of a function apart, on a device. Lines do not: code moves.
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct Place<'a> {
    launch: Option<(u32, &'a str)>,
    measure: Measure,
    key: Option<&'a str>,
    cache: CacheState,
    clock: Clock,
    graph: bool,
}

impl<'a> Place<'a> {
    /// That of a series.
    pub fn of(series: &'a Series) -> Place<'a> {
        let &Series { measure, cache, clock, graph, .. } = series;
        let launch = series.launch().map(|launch| (launch.index(), launch.name()));
        Place { launch, measure, key: series.key(), cache, clock, graph }
    }
}

/// Whether two are the same function of one build.
pub fn is_same_site(one: &Site, other: &Site) -> bool {
    (one.name(), one.file(), one.line()) == (other.name(), other.file(), other.line())
}

/// The functions of two builds that are the same, by their places in the two lists: those of one name.
///
/// Where several have the name, those in one file are the same in the order of their lines, if it has as
/// many in both; else those on the same line. One of each that is left over is the same wherever it is.
pub fn same_sites(base: &[Site], new: &[Site]) -> HashMap<usize, usize> {
    let mut named: BTreeMap<&str, [Vec<usize>; 2]> = BTreeMap::new();
    for (side, sites) in [base, new].into_iter().enumerate() {
        for (at, site) in sites.iter().enumerate() {
            named.entry(site.name()).or_default()[side].push(at);
        }
    }
    let mut same = HashMap::new();
    for [mut was, mut is] in named.into_values() {
        was.sort_by_key(|&at| (base[at].file(), base[at].line()));
        is.sort_by_key(|&at| (new[at].file(), new[at].line()));
        let in_file = |sites: &[Site], of: &[usize], file: &str| {
            of.iter().filter(|&&at| sites[at].file() == file).count()
        };
        let (mut left, mut free) = (Vec::new(), is.clone());
        for &old in &was {
            let site = &base[old];
            let moved = in_file(base, &was, site.file()) == in_file(new, &is, site.file());
            let found = free.iter().position(|&at| {
                new[at].file() == site.file() && (moved || new[at].line() == site.line())
            });
            match found {
                Some(found) => _ = same.insert(old, free.remove(found)),
                None => left.push(old),
            }
        }
        if let ([old], [now]) = (&*left, &*free) {
            same.insert(*old, *now);
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_time_report::ScopeKind;

    fn sites(places: &[(&str, &str, u32)]) -> Vec<Site> {
        let site = |&(name, file, line): &(&str, &str, u32)| Site {
            name: name.to_owned(),
            file: file.to_owned(),
            line,
            scope: ScopeKind::Body,
            launches_seen: 0,
            options: String::new(),
            calls: 0,
            warmup: 0,
            skipped: 0,
            unsampled: 0,
            timed: 0,
            holds_released: 0,
            holds_expired: 0,
            sample_rate: 1.0,
            warnings: Vec::new(),
            series: Vec::new(),
        };
        places.iter().map(site).collect()
    }

    #[track_caller]
    fn check(base: &[(&str, &str, u32)], new: &[(&str, &str, u32)], expected: &[(usize, usize)]) {
        let mut same: Vec<(usize, usize)> =
            same_sites(&sites(base), &sites(new)).into_iter().collect();
        same.sort_unstable();
        assert_eq!(same, expected);
    }

    #[test]
    fn what_moved_is_the_same() {
        check(&[("f", "a", 1), ("g", "a", 5)], &[("g", "b", 9), ("f", "a", 2)], &[(0, 1), (1, 0)]);
        // The first came to where the second was.
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 5), ("f", "a", 9)], &[(0, 0), (1, 1)]);
        check(&[("f", "a", 5), ("f", "b", 1)], &[("f", "b", 2), ("f", "a", 7)], &[(0, 1), (1, 0)]);
        check(&[("f", "a", 5), ("f", "b", 1)], &[("f", "c", 1), ("f", "a", 5)], &[(0, 1), (1, 0)]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_not() {
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 5)], &[(1, 0)]);
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 3)], &[]);
        check(&[("f", "a", 1)], &[("f", "b", 1), ("f", "c", 1)], &[]);
        check(&[("f", "a", 1)], &[("g", "a", 1)], &[]);
    }
}
