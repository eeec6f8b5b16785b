//! The rows of one function.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::figure::Figure;
use crate::groups::Group;
use crate::largest::sort_by_largest;
use crate::own_times::Shares;
use crate::row::Row;
use crate::units::{self, printable};
use crate::{Kernel, Launch, Launches, Series, Site, Snapshot, opened};

/// Precedes the name of a kernel.
pub const KERNEL_INDENT: &str = "    ";
/// The maximum number of kernels below a row.
const KERNELS: usize = 5;

/// One function, with all of its groups.
pub struct Function<'t, 'a> {
    pub snapshot: &'a Snapshot,
    pub shares: &'t Shares<'a>,
    pub groups: &'t [Group<'a>],
    /// The function's own GPU time, or -1 if it has none that is known.
    pub own_ns: f64,
}

impl<'t, 'a> Function<'t, 'a> {
    pub fn of(analysis: &'t Analysis<'a>, groups: &'t [Group<'a>]) -> Function<'t, 'a> {
        let Analysis { snapshot, shares, .. } = analysis;
        let function = Function { snapshot, shares, groups, own_ns: -1.0 };
        let own_ns = function.share(groups).map_or(-1.0, |share| shares.ns(share));
        Function { own_ns, ..function }
    }

    /// Returns the index of the function.
    pub fn site(&self) -> Option<usize> {
        self.groups.first().map(|group| group.at)
    }

    /// Returns the groups' share of all GPU time.
    pub fn share<'g>(&self, groups: impl IntoIterator<Item = &'g Group<'a>>) -> Option<Figure>
    where
        'a: 'g,
    {
        let share = |group: &Group| self.shares.of_row(group.at, group.head?);
        groups.into_iter().filter_map(share).reduce(|sum, share| sum + share)
    }

    /// Returns the function's own rows, one for each device, clock and cache state. With details, each is followed by its
    /// keys, launches and kernels.
    pub fn rows(&self, with_details: bool) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        for (at, groups) in self.places().iter().enumerate() {
            let calls = |site: &Site| (at == 0).then_some(site.calls);
            match groups[..] {
                [] => {}
                [group] => {
                    rows.extend(self.single(group, calls(group.site)));
                    if with_details {
                        self.add_details(&mut rows, group, "  ");
                    }
                }
                [group, ..] => {
                    let all: Vec<&Series> = groups.iter().filter_map(|group| group.head).collect();
                    let (name, keys) = (printable(&group.site.name), groups.len());
                    let counted = format!("{name} ({} keys)", units::count(keys as u64));
                    let label = if with_details { name } else { counted };
                    let sum = Row::of(group.site, &all, label);
                    let sum = Row { is_function: true, calls: calls(group.site), ..sum };
                    let share = self.share(groups.iter().copied());
                    rows.push(sum.with_share(self.shares, group.at, share));
                    for group in groups.iter().filter(|_| with_details) {
                        rows.extend(group.head.map(|head| self.head(group, head, None, None)));
                        self.add_details(&mut rows, group, "    ");
                    }
                }
            }
        }
        rows
    }

    /// Returns the total time of the longest of the function's own rows.
    pub fn longest(&self) -> f64 {
        self.places().first().map_or(0.0, |groups| total(groups))
    }

    /// Returns `true` if all launches were only captured.
    fn is_captured(&self) -> bool {
        self.groups.iter().all(|group| group.head.is_none())
    }

    /// Returns the groups of each of the function's own rows, longest total first. Launches that
    /// were only captured come last.
    fn places(&self) -> Vec<Vec<&'t Group<'a>>> {
        let mut places: Vec<Vec<&Group>> = Vec::new();
        let mut known = HashMap::new();
        for group in self.groups {
            let place = group.head.map(|head| (&head.device, head.clock.name(), head.cache.name()));
            let at =
                place.map_or(places.len(), |place| *known.entry(place).or_insert(places.len()));
            match places.get_mut(at) {
                Some(place) => place.push(group),
                None => places.push(vec![group]),
            }
        }
        let is_captured = |groups: &[&Group]| groups.iter().all(|group| group.head.is_none());
        let time = |groups: &Vec<&Group>| if is_captured(groups) { -1.0 } else { total(groups) };
        sort_by_largest(&mut places, time);
        places
    }

    /// Returns the row of a function that has one group in its place.
    fn single(&self, group: &Group<'a>, calls: Option<u64>) -> Option<Row<'a>> {
        let name = printable(&group.site.name);
        match group.head {
            Some(head) => Some(self.head(group, head, Some(name), calls)),
            // Launches that were only captured follow the function's other rows.
            None if !self.is_captured() => None,
            None => {
                let launches = self.groups.iter().map(|group| group.launches.len()).sum::<usize>();
                let label = match launches {
                    0 => name,
                    _ => format!("{name} ({} captured)", units::count(launches as u64)),
                };
                Some(Row { label, is_function: true, calls, ..Row::default() })
            }
        }
    }

    /// Returns the row of a function, or of one of its keys if there is no `name`.
    fn head(
        &self,
        group: &Group<'a>,
        series: &'a Series,
        name: Option<String>,
        calls: Option<u64>,
    ) -> Row<'a> {
        let key = series.key.as_deref().map(|key| format!("[{}]", printable(key)));
        let is_function = name.is_some();
        let label = match (name, key) {
            (Some(name), Some(key)) => format!("{name} {key}"),
            (Some(name), None) => name,
            // Without a name or a key, the row would have no label.
            (None, key) => format!("  {}", key.unwrap_or_else(|| "(no key)".to_owned())),
        };
        let launches = launches(series, group);
        let row = Row::of_series((group.at, group.site), series, self.shares, label);
        Row { is_function, launches, calls, ..row }
    }

    /// Adds the rows of the launches and of the kernels below a head's row.
    fn add_details(&self, rows: &mut Vec<Row<'a>>, group: &Group<'a>, indent: &str) {
        for &series in &group.launches {
            let Some(launch) = &series.launch else { continue };
            let label = match is_alone(launch, self.groups) {
                true => format!("{}, line {}", printable(&launch.name), launch.line),
                false => printable(&launch.label()),
            };
            // A key is named in the row above, except for launches that were only captured.
            let key = series.key.as_deref().filter(|_| group.head.is_none());
            let key = key.map(|key| format!(" [{}]", printable(key))).unwrap_or_default();
            let label = format!("{indent}{label}{key}");
            rows.push(Row::of_series((group.at, group.site), series, self.shares, label));
        }
        if let Some(series) = group.head {
            rows.extend(kernels(self.snapshot, group.site, series));
        }
    }
}

fn total(groups: &[&Group]) -> f64 {
    groups.iter().fold(0.0, |sum, group| sum + group.total())
}

/// Returns `true` if no other launch has the same name and line.
fn is_alone(launch: &Launch, groups: &[Group]) -> bool {
    let launches = groups.iter().flat_map(|group| &group.launches);
    let mut others = launches.filter_map(|launch| launch.launch.as_ref());
    others.all(|other| {
        other.index == launch.index || (&other.name, other.line) != (&launch.name, launch.line)
    })
}

/// Returns the number of launches per call, unless rows of their own show them.
fn launches(series: &Series, group: &Group) -> Option<Launches> {
    let launches = series.launches.filter(|launches| launches.max > 1)?;
    let rows = group.launches.iter().filter(|launch| !launch.graph).count();
    let are_shown = launches.min == launches.max && rows == launches.max as usize;
    (!are_shown).then_some(launches)
}

/// Returns the rows about the recorded calls of a series, with its largest kernels.
fn kernels<'a>(snapshot: &Snapshot, site: &Site, series: &'a Series) -> Vec<Row<'a>> {
    let Some(line) = opened::line(site, series, snapshot.device(series)) else { return Vec::new() };
    let all = series.kernels();
    // A row "and 1 more" would be no shorter than the kernel itself.
    let shown = if all.len() > KERNELS + 1 { KERNELS } else { all.len() };
    let (shown, others) = all.split_at(shown);
    let sentence = Some(format!("{KERNEL_INDENT}{}", printable(&line)));
    let mut rows = vec![Row { sentence, ..Row::default() }];
    rows.extend(shown.iter().map(|kernel| {
        let is_ambiguous = shown.iter().filter(|other| other.name == kernel.name).count() > 1;
        kernel_row(kernel, is_ambiguous)
    }));
    if !others.is_empty() {
        rows.push(Row {
            label: format!("{KERNEL_INDENT}and {} more", units::count(others.len() as u64)),
            kernel_share: Some(others.iter().fold(0.0, |sum, kernel| sum + kernel.share)),
            ..Row::default()
        });
    }
    rows
}

/// Returns the row of a kernel. Its total is left out, because kernels are known only for recorded calls, but totals
/// cover all calls.
fn kernel_row(kernel: &Kernel, is_ambiguous: bool) -> Row<'_> {
    let configuration = Some(kernel.configuration()).filter(|_| is_ambiguous).unwrap_or_default();
    let separator = if configuration.is_empty() { "" } else { ", " };
    let configuration = format!("{separator}{configuration}");
    Row {
        label: format!("{KERNEL_INDENT}{}{configuration}", printable(&kernel.name)),
        kernel: Some(kernel),
        configuration,
        samples: Some(kernel.count),
        stats: kernel.time_ns.as_ref(),
        kernel_share: Some(kernel.share),
        ..Row::default()
    }
}
