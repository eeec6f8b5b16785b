//! The identity of functions and series, by which those of two reports are matched.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::{Series, Site};

/// Returns `true` if two series are the same among those of one function on one device.
///
/// Line numbers are not compared, because they change between builds.
pub fn is_same_series(one: &Series, other: &Series) -> bool {
    let kind = |series: &Series| (series.measure, series.cache, series.clock, series.graph);
    launch(one) == launch(other) && kind(one) == kind(other) && one.key == other.key
}

/// Returns the index and the name of a series' launch.
fn launch(series: &Series) -> Option<(u32, &str)> {
    series.launch.as_ref().map(|launch| (launch.index, launch.name.as_str()))
}

/// Returns `true` if two sites are the same function of the same build.
pub fn is_same_site(one: &Site, other: &Site) -> bool {
    (&one.name, &one.file, one.line) == (&other.name, &other.file, other.line)
}

/// Matches the functions of two builds by name. Maps indices into `base` to indices into `new`.
///
/// Functions that share a name within a file are matched in the order of their lines if both builds
/// have the same number of them there, otherwise by line. If one remains in each build, the two are
/// matched wherever they are.
pub fn match_sites(base: &[Site], new: &[Site]) -> HashMap<usize, usize> {
    let mut by_name: BTreeMap<&str, [Vec<usize>; 2]> = BTreeMap::new();
    for (side, sites) in [base, new].into_iter().enumerate() {
        for (i, site) in sites.iter().enumerate() {
            by_name.entry(&site.name).or_default()[side].push(i);
        }
    }
    let mut matches = HashMap::new();
    for [mut base_group, mut new_group] in by_name.into_values() {
        base_group.sort_by_key(|&i| (&base[i].file, base[i].line));
        new_group.sort_by_key(|&i| (&new[i].file, new[i].line));
        let in_file = |sites: &[Site], group: &[usize], file: &str| {
            group.iter().filter(|&&i| sites[i].file == file).count()
        };
        let (mut unmatched, mut free) = (Vec::new(), new_group.clone());
        for &old in &base_group {
            let site = &base[old];
            let by_order =
                in_file(base, &base_group, &site.file) == in_file(new, &new_group, &site.file);
            let found = free
                .iter()
                .position(|&i| new[i].file == site.file && (by_order || new[i].line == site.line));
            match found {
                Some(found) => _ = matches.insert(old, free.remove(found)),
                None => unmatched.push(old),
            }
        }
        if let ([old], [new]) = (&*unmatched, &*free) {
            matches.insert(*old, *new);
        }
    }
    matches
}

#[cfg(test)]
mod tests {
    use gpu_time_report::value;

    use super::*;
    use crate::fixtures::site;

    fn sites(locations: &[(&str, &str, u32)]) -> Vec<Site> {
        let site = |&(name, file, line): &(&str, &str, u32)| {
            value!(Site { file: file.to_owned(), ..site(name, line, Vec::new()) })
        };
        locations.iter().map(site).collect()
    }

    #[track_caller]
    fn check(base: &[(&str, &str, u32)], new: &[(&str, &str, u32)], expected: &[(usize, usize)]) {
        let mut matches: Vec<(usize, usize)> =
            match_sites(&sites(base), &sites(new)).into_iter().collect();
        matches.sort_unstable();
        assert_eq!(matches, expected);
    }

    #[test]
    fn match_sites_follows_moved_functions() {
        check(&[("f", "a", 1), ("g", "a", 5)], &[("g", "b", 9), ("f", "a", 2)], &[(0, 1), (1, 0)]);
        // The first function has moved to the old line of the second.
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 5), ("f", "a", 9)], &[(0, 0), (1, 1)]);
        check(&[("f", "a", 5), ("f", "b", 1)], &[("f", "b", 2), ("f", "a", 7)], &[(0, 1), (1, 0)]);
        check(&[("f", "a", 5), ("f", "b", 1)], &[("f", "c", 1), ("f", "a", 5)], &[(0, 1), (1, 0)]);
    }

    #[test]
    fn match_sites_skips_ambiguous_functions() {
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 5)], &[(1, 0)]);
        check(&[("f", "a", 1), ("f", "a", 5)], &[("f", "a", 3)], &[]);
        check(&[("f", "a", 1)], &[("f", "b", 1), ("f", "c", 1)], &[]);
        check(&[("f", "a", 1)], &[("g", "a", 1)], &[]);
    }
}
