//! The rows of one function.

use super::keys::HiddenKeys;
use crate::groups::Group;
use crate::own_times::{Share, Shares};
use crate::row::Row;
use crate::units::{self, printable};
use crate::{Kernel, Launch, Launches, Series, Site, Snapshot, kernel_names, opened};

/// The maximum width of the kernel name that follows the name of a function with a single kernel.
const KERNEL: usize = 24;

/// Precedes the name of a kernel.
pub const KERNEL_INDENT: &str = "    ";

/// One function, with all of its groups.
pub struct Function<'t, 'a> {
    pub snapshot: &'a Snapshot,
    pub shares: &'t Shares<'a>,
    pub groups: &'t [Group<'a>],
}

/// The amount of detail shown for a function.
#[derive(Clone, Copy)]
pub struct Shown {
    /// The number of keys per function.
    keys: usize,
    /// The number of kernels per series, or `None` to leave out the line about its recorded calls too.
    kernels: Option<usize>,
    /// Gives a function's only launch and its only kernel rows of their own.
    singles: bool,
}

impl Shown {
    pub const ALL: Shown = Shown { singles: true, ..Shown::MOST };
    pub const MOST: Shown = Shown::of(8, Some(5));

    /// The levels of detail, from more to less. Kernels are left out before keys.
    const FEWER: [Shown; 8] = [
        Shown::of(8, Some(3)),
        Shown::of(8, Some(1)),
        Shown::of(8, Some(0)),
        Shown::of(8, None),
        Shown::of(4, None),
        Shown::of(2, None),
        Shown::of(1, None),
        Shown::of(0, None),
    ];

    const fn of(keys: usize, kernels: Option<usize>) -> Shown {
        Shown { keys, kernels, singles: false }
    }
}

impl<'t, 'a> Function<'t, 'a> {
    /// Returns the rows, with at most `most` of them below the function's own.
    pub fn within(&self, most: usize) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        for shown in Shown::FEWER {
            rows = self.rows(shown);
            if rows.iter().filter(|row| !row.is_function).count() <= most {
                return rows;
            }
        }
        let mut below = 0;
        rows.retain(|row| {
            below += usize::from(!row.is_function);
            row.is_function || below <= most
        });
        rows
    }

    /// Returns the groups' share of all GPU time.
    pub fn share<'g>(&self, groups: impl IntoIterator<Item = &'g Group<'a>>) -> Option<Share>
    where
        'a: 'g,
    {
        let share = |group: &Group| self.shares.of_row(group.site, group.head?);
        groups.into_iter().filter_map(share).reduce(|sum, share| sum + share)
    }

    /// Returns the function's own rows, one for each device, clock and cache state, and the details
    /// below each: keys, launches and kernels.
    pub fn rows(&self, shown: Shown) -> Vec<Row<'a>> {
        let hidden = HiddenKeys::of(self.groups, shown.keys);
        let mut rows = Vec::new();
        for (at, groups) in self.places().iter().enumerate() {
            self.add(&mut rows, groups, at == 0, &hidden, shown);
        }
        if shown.keys == 0 {
            // No row is left for keys, so the function's row counts them.
            count_keys(&mut rows, hidden.len());
        } else if hidden.len() > 0
            && let Some(Group { site, .. }) = self.groups.first()
        {
            let heads = self.groups.iter().filter_map(|group| Some((group, group.head?)));
            let (groups, all): (Vec<&Group>, Vec<&Series>) =
                heads.filter(|(_, series)| hidden.has(series)).unzip();
            let label = format!("  … {} more keys", units::count(hidden.len() as u64));
            // The keys may differ in their places, and some have no series of a whole call.
            let sum = Row::of(site, &all, label);
            rows.push(Row {
                series: None,
                place: None,
                stats: None,
                share: self.share(groups),
                ..sum
            });
        }
        rows
    }

    /// Returns the total time of the longest of the function's own rows.
    pub fn longest(&self) -> f64 {
        self.places().first().map_or(0.0, |groups| total(groups))
    }

    /// Returns the groups of each of the function's own rows, longest total first. Launches that
    /// were only captured come last.
    fn places(&self) -> Vec<Vec<&'t Group<'a>>> {
        let mut places: Vec<Vec<&Group>> = Vec::new();
        for group in self.groups {
            match places.iter_mut().find(|of| of.iter().any(|other| is_same_place(group, other))) {
                Some(place) => place.push(group),
                None => places.push(vec![group]),
            }
        }
        let is_captured = |groups: &[&Group]| groups.iter().all(|group| group.head.is_none());
        places.sort_by(|a, b| {
            is_captured(a).cmp(&is_captured(b)).then(total(b).total_cmp(&total(a)))
        });
        places
    }

    /// Adds the rows of groups that differ in their keys only.
    fn add(
        &self,
        rows: &mut Vec<Row<'a>>,
        groups: &[&Group<'a>],
        is_first: bool,
        hidden: &HiddenKeys,
        shown: Shown,
    ) {
        let Some(Group { site, .. }) = groups.first() else { return };
        let name = printable(&site.name);
        let calls = is_first.then_some(site.calls);
        if let [group] = groups {
            match group.head {
                Some(head) => self.add_head(rows, group, head, &name, calls, shown),
                // Launches that were only captured follow the function's other rows.
                None if self.groups.iter().any(|group| group.head.is_some()) => {}
                None => {
                    let (label, is_function) = (name, true);
                    rows.push(Row { label, is_function, calls, ..Row::default() });
                }
            }
            self.add_below(rows, group, hidden, shown, "  ");
            return;
        }
        let all: Vec<&Series> = groups.iter().filter_map(|group| group.head).collect();
        let (is_function, share) = (true, self.share(groups.iter().copied()));
        rows.push(Row { is_function, calls, share, ..Row::of(site, &all, name) });
        for group in groups {
            if let Some(head) = group.head.filter(|head| !hidden.has(head)) {
                self.add_head(rows, group, head, "", None, shown);
                self.add_below(rows, group, hidden, shown, "    ");
            }
        }
    }

    /// Adds the row of a function, or of one of its keys if `name` is empty.
    fn add_head(
        &self,
        rows: &mut Vec<Row<'a>>,
        group: &Group<'a>,
        series: &'a Series,
        name: &str,
        calls: Option<u64>,
        shown: Shown,
    ) {
        let key = series.key.as_deref().map(|key| format!("[{}]", printable(key)));
        // Without a name or a key, the row would have no label.
        let key = key.or_else(|| name.is_empty().then(|| "(no key)".to_owned()));
        let single = single_kernel(series).filter(|_| !shown.singles);
        let label = [
            Some(if name.is_empty() { " ".to_owned() } else { name.to_owned() }),
            key,
            single.map(|kernel| format!("→ {}", short(kernel))),
        ];
        let label: Vec<String> = label.into_iter().flatten().collect();
        rows.push(Row {
            is_function: !name.is_empty(),
            launches: launches(series, group),
            calls,
            ..Row::of_series(group.site, series, self.shares, label.join(" "))
        });
    }

    /// Adds the rows of the launches and of the kernels below a head's row.
    fn add_below(
        &self,
        rows: &mut Vec<Row<'a>>,
        group: &Group<'a>,
        hidden: &HiddenKeys,
        shown: Shown,
        indent: &str,
    ) {
        if shown.singles || !is_single_launch(group) {
            self.add_launches(rows, group, hidden, indent);
        }
        if let Some(series) =
            group.head.filter(|head| shown.singles || single_kernel(head).is_none())
            && let Some(most) = shown.kernels
        {
            rows.extend(kernels(self.snapshot, group.site, series, most));
        }
    }

    /// Adds the rows of launches.
    fn add_launches(
        &self,
        rows: &mut Vec<Row<'a>>,
        group: &Group<'a>,
        hidden: &HiddenKeys,
        indent: &str,
    ) {
        let kernel = group.head.and_then(common_kernel);
        for &series in &group.launches {
            let Some(launch) = series.launch.as_ref().filter(|_| !hidden.has(series)) else {
                continue;
            };
            let label = match kernel.filter(|_| !series.graph) {
                Some(kernel) => format!("{}, line {}", short(kernel), launch.line),
                None if is_alone(launch, self.groups) => {
                    format!("{}, line {}", printable(&launch.name), launch.line)
                }
                None => printable(&launch.label()),
            };
            // A key is named in the row above, except for launches that were only captured.
            let key = series.key.as_deref().filter(|_| group.head.is_none());
            let key = key.map(|key| format!(" [{}]", printable(key))).unwrap_or_default();
            let label = format!("{indent}{label}{key}");
            rows.push(Row::of_series(group.site, series, self.shares, label));
        }
    }
}

/// Adds the number of omitted keys to the label of the function's row, unless the row shows its only
/// key.
fn count_keys(rows: &mut [Row], keys: usize) {
    let row = rows.iter_mut().find(|row| row.is_function && row.series.is_none());
    if let Some(row) = row.filter(|_| keys > 0) {
        row.label.push_str(&format!(" ({} keys)", units::count(keys as u64)));
    }
}

fn total(groups: &[&Group]) -> f64 {
    groups.iter().fold(0.0, |sum, group| sum + group.total())
}

/// Returns `true` if the groups differ only in their keys.
fn is_same_place(one: &Group, other: &Group) -> bool {
    let place = |group: &Group| {
        let series = group.head?;
        Some((series.device.clone(), series.clock, series.cache))
    };
    place(one).is_some() && place(one) == place(other)
}

/// Returns `true` if each call of the function makes one launch, whose row would repeat the
/// function's.
fn is_single_launch(group: &Group) -> bool {
    let launches = group.head.and_then(|head| head.launches);
    let is_one = launches.is_some_and(|launches| (launches.min, launches.max) == (1, 1));
    is_one && matches!(&*group.launches, [launch] if !launch.graph)
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

/// Returns the kernel of a function that runs this kernel once per call and nothing else.
fn single_kernel(series: &Series) -> Option<&Kernel> {
    match series.kernels() {
        [kernel] if kernel.count == series.opened() => Some(kernel),
        _ => None,
    }
}

/// Returns one of the kernels of the recorded calls, if all have the same name.
fn common_kernel(series: &Series) -> Option<&Kernel> {
    let mut kernels = series.kernels().iter().filter(|kernel| !kernel.is_copy());
    let first = kernels.next()?;
    (first.name != Kernel::OTHER && kernels.all(|kernel| kernel.name == first.name))
        .then_some(first)
}

/// Returns the name of a kernel, shortened to share a cell with other text.
fn short(kernel: &Kernel) -> String {
    kernel_names::short(&printable(&kernel.name), KERNEL)
}

/// Returns the rows about the recorded calls of a series, with its largest kernels.
fn kernels<'a>(snapshot: &Snapshot, site: &Site, series: &'a Series, most: usize) -> Vec<Row<'a>> {
    let Some(line) = opened::line(site, series, snapshot.device(series)) else { return Vec::new() };
    let all = series.kernels();
    // A row "and 1 more" would be no shorter than the kernel itself.
    let shown = if all.len() > most + 1 { most } else { all.len() };
    let (shown, others) = all.split_at_checked(shown).unwrap_or((all, &[]));
    let sentence = Some(format!("{KERNEL_INDENT}{}", printable(&line)));
    let mut rows = vec![Row { sentence, ..Row::default() }];
    rows.extend(shown.iter().map(|kernel| {
        let is_ambiguous = shown.iter().filter(|other| other.name == kernel.name).count() > 1;
        kernel_row(kernel, is_ambiguous)
    }));
    if !others.is_empty() && !shown.is_empty() {
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
