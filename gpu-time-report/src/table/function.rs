//! The rows of one function.

use crate::analysis::Analysis;
use crate::figure::Figure;
use crate::groups::Group;
use crate::largest::sort_by_largest;
use crate::own_times::Shares;
use crate::row::Row;
use crate::units::{self, printable};
use crate::{Kernel, Launch, Launches, Series, opened};

/// The maximum number of kernels below a row.
const KERNELS: usize = 5;

/// Returns the share of these groups of a function.
pub fn share<'g, 'a: 'g>(
    shares: &Shares,
    groups: impl IntoIterator<Item = &'g Group<'a>>,
) -> Option<Figure> {
    let share = |group: &Group| shares.of_row(group.at, group.head?);
    groups.into_iter().filter_map(share).reduce(|sum, share| sum + share)
}

/// Returns the function's own rows, one for each device, clock and cache state, each followed by its details: keys,
/// launches and kernels.
pub fn rows<'a>(analysis: &Analysis<'a>, groups: &[Group<'a>]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let is_captured = groups.iter().all(|group| group.head.is_none());
    for (at, place) in places(groups).iter().enumerate() {
        let Some(&first) = place.first() else { continue };
        let (name, calls) = (printable(&first.site.name), (at == 0).then_some(first.site.calls));
        let own = match (&place[..], first.head) {
            ([_], Some(head)) => Some(head_row(analysis, first, head, Some(name))),
            // Launches that were only captured follow the function's other rows.
            ([_], None) if !is_captured => None,
            ([_], None) => {
                let launches = groups.iter().map(|group| group.launches.len()).sum::<usize>();
                let label = match launches {
                    0 => name,
                    _ => format!("{name} ({} captured)", units::count(launches as u64)),
                };
                Some(Row { label, ..Row::default() })
            }
            _ => {
                let all: Vec<&Series> = place.iter().filter_map(|group| group.head).collect();
                let label = format!("{name} ({} keys)", units::count(place.len() as u64));
                let sum = Row::of(first.site, &all, label);
                let share = share(&analysis.shares, place.iter().copied());
                Some(sum.with_share(&analysis.shares, first.at, share))
            }
        };
        rows.extend(own.map(|row| Row { is_function: true, calls, ..row }));
        for group in place {
            let key = group.head.filter(|_| place.len() > 1);
            rows.extend(key.map(|head| head_row(analysis, group, head, None)));
            let indent = if place.len() > 1 { "    " } else { "  " };
            rows.extend(group.launches.iter().map(|launch| {
                let label = format!("{indent}{}", launch_label(group, launch, groups));
                Row::of_series((group.at, group.site), launch, &analysis.shares, label)
            }));
            rows.extend(kernels(group.head.map_or(&[], Series::kernels)));
        }
    }
    rows
}

/// Returns the groups of each of the function's own rows, longest total first. Launches that
/// were only captured come last.
fn places<'t, 'a>(groups: &'t [Group<'a>]) -> Vec<Vec<&'t Group<'a>>> {
    let place =
        |group: &Group<'a>| Some((&group.head?.device, group.head?.clock, group.head?.cache));
    let mut places: Vec<Vec<&Group>> = Vec::new();
    for group in groups {
        let is_same =
            |known: &&mut Vec<&Group<'a>>| group.head.is_some() && place(known[0]) == place(group);
        match places.iter_mut().find(is_same) {
            Some(place) => place.push(group),
            None => places.push(vec![group]),
        }
    }
    let total = |groups: &[&Group]| groups.iter().fold(0.0, |sum, group| sum + group.total());
    let is_captured = |groups: &[&Group]| groups.iter().all(|group| group.head.is_none());
    for place in &mut places {
        sort_by_largest(place, |group| group.total());
    }
    sort_by_largest(&mut places, |groups| if is_captured(groups) { -1.0 } else { total(groups) });
    places
}

/// Returns the row of a function, or of one of its keys if there is no `name`.
fn head_row<'a>(
    analysis: &Analysis,
    group: &Group<'a>,
    series: &'a Series,
    name: Option<String>,
) -> Row<'a> {
    let key = series.key.as_deref().map(|key| format!("[{}]", printable(key)));
    let label = match (name, key) {
        (Some(name), Some(key)) => format!("{name} {key}"),
        (Some(name), None) => name,
        // Without a name or a key, the row would have no label.
        (None, key) => format!("  {}", key.unwrap_or_else(|| "(no key)".to_owned())),
    };
    let function = (group.at, group.site);
    let below = opened::line(group.site, series);
    Row {
        launches: launches(series, group),
        below: below.map(|line| format!("    {}", printable(&line))),
        ..Row::of_series(function, series, &analysis.shares, label)
    }
}

/// Returns the label of a launch.
fn launch_label(group: &Group, series: &Series, groups: &[Group]) -> String {
    let Some(launch) = &series.launch else { return String::new() };
    let label = if is_alone(launch, groups) {
        format!("{}, line {}", printable(&launch.name), launch.line)
    } else {
        printable(&launch.label())
    };
    // A key is named in the row above, except for launches that were only captured.
    let key = series.key.as_deref().filter(|_| group.head.is_none());
    label + &key.map(|key| format!(" [{}]", printable(key))).unwrap_or_default()
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

/// Returns the rows of the largest kernels of recorded calls.
fn kernels(all: &[Kernel]) -> Vec<Row<'_>> {
    // A row "and 1 more" would be no shorter than the kernel itself.
    let shown = if all.len() > KERNELS + 1 { KERNELS } else { all.len() };
    let (shown, others) = all.split_at(shown);
    let is_ambiguous =
        |kernel: &Kernel| shown.iter().filter(|other| other.name == kernel.name).count() > 1;
    let row = |kernel| Row::of_kernel(kernel, is_ambiguous(kernel));
    let mut rows: Vec<Row> = shown.iter().map(row).collect();
    if !others.is_empty() {
        rows.push(Row {
            label: format!("    and {} more", units::count(others.len() as u64)),
            kernel_share: Some(others.iter().fold(0.0, |sum, kernel| sum + kernel.share)),
            ..Row::default()
        });
    }
    rows
}
