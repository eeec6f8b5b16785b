//! The table: a function and its launches are a group, and groups stand in the order of their totals.

use std::collections::HashSet;

use maud::{Markup, html};

use super::scale::Scale;
use crate::table::sum_of;
use crate::units::{self, figure, printable};
use crate::{CacheState, Clock, Series, Site, Snapshot, notes, table};

/// A function on one device in one cache state, and its launches.
struct Group<'a> {
    site: usize,
    /// The function's own series. One whose calls were all captured has none.
    head: Option<Row<'a>>,
    launches: Vec<Row<'a>>,
    /// Calls are counted by function, so they stand once.
    has_calls: bool,
}

/// A series, and where it stands in its site.
#[derive(Clone, Copy)]
struct Row<'a> {
    at: usize,
    series: &'a Series,
}

/// What all rows share.
struct Columns {
    times: Scale,
    totals: Scale,
    /// The shortest and the longest time of any row's spread, as powers of e.
    range: (f64, f64),
    keys: bool,
    /// Whether there are several devices.
    devices: bool,
    bytes: bool,
    flops: bool,
}

/// The table, with the controls that its script uses.
pub fn table(snapshot: &Snapshot) -> Markup {
    let mut groups: Vec<Group> =
        snapshot.sites.iter().enumerate().flat_map(|(at, site)| groups(at, site)).collect();
    groups.sort_by(|a, b| b.total().total_cmp(&a.total()));
    let mut seen = HashSet::new();
    groups.iter_mut().for_each(|group| group.has_calls = seen.insert(group.site));
    let columns = Columns::of(snapshot);
    html! {
        h2 { "Functions" }
        @if groups.is_empty() {
            p.soft { "No function was called." }
        } @else {
            div.tools {
                input type="search" placeholder="Filter by function, file, launch, device… ( / )" aria-label="filter";
                label.sort { "sort by " select {} }
                @if groups.iter().any(|group| !group.launches.is_empty()) {
                    label { input type="checkbox" checked; "launches" }
                }
                output {}
            }
            div.scroll {
                table.rows {
                    (columns.head())
                    @for group in &groups { (columns.group(snapshot, group)) }
                }
            }
        }
    }
}

/// The groups of a site that was called.
fn groups<'a>(at: usize, site: &'a Site) -> Vec<Group<'a>> {
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
    fn total(&self) -> f64 {
        let launches = || self.launches.iter().filter_map(|row| row.series.total()).sum();
        self.head.map_or_else(launches, |head| head.series.total().unwrap_or_default())
    }
}

impl Columns {
    fn of(snapshot: &Snapshot) -> Columns {
        let all = || snapshot.sites.iter().flat_map(|site| &site.series);
        let shown = || all().filter_map(Series::shown);
        let ends = shown().flat_map(|stats| [stats.p5.max(1.0).ln(), stats.p95.max(1.0).ln()]);
        Columns {
            times: Scale::of(shown().map(|stats| stats.median)),
            totals: Scale::of(all().filter_map(Series::total)),
            range: ends.fold((f64::MAX, 0.0), |(low, high), end| (end.min(low), end.max(high))),
            keys: all().any(|series| series.key.is_some()),
            devices: snapshot.devices.len() > 1,
            bytes: all().any(|series| series.bytes.is_some()),
            flops: all().any(|series| series.flops.is_some()),
        }
    }

    fn head(&self) -> Markup {
        let (times, totals) = (self.times.unit(), self.totals.unit());
        html! {
            thead {
                tr {
                    th data-sortable { "function" }
                    @if self.keys { th data-sortable { "key" } }
                    th data-sortable { "on" }
                    th data-sortable { "cache" }
                    th.n.wide data-sortable { "calls" }
                    th.n data-sortable { "samples" }
                    th.n data-sortable { "median " small { (times) } }
                    th.n.wide data-sortable { "p5 " small { (times) } }
                    th.n.wide data-sortable { "p95 " small { (times) } }
                    th { "p5–p95 " small { "log" } }
                    th.n data-sortable aria-sort="descending" { "total " small { (totals) } }
                    th.n data-sortable { "share" }
                    @if self.bytes { th.n data-sortable { "GB/s" } }
                    @if self.flops { th.n data-sortable { "TFLOP/s" } }
                }
            }
        }
    }

    fn group(&self, snapshot: &Snapshot, group: &Group) -> Markup {
        let Some(site) = snapshot.sites.get(group.site) else { return html! {} };
        let calls = group.has_calls.then_some(site.calls);
        html! {
            tbody {
                @match group.head {
                    Some(Row { at, series }) => {
                        tr.row data-site=(group.site) data-series=(at) {
                            th scope="row" {
                                div.name { (printable(&site.name)) }
                                @if let Some(launches) = series.launches {
                                    @if launches.max != 1 { small { (sum_of(launches)) } }
                                }
                            }
                            (self.cells(snapshot, series, calls))
                        }
                    }
                    None => {
                        tr.row data-site=(group.site) {
                            th scope="row" { div.name { (printable(&site.name)) } }
                            @if self.keys { td.less {} }
                            td.less {}
                            td.less {}
                            (self.calls(calls))
                            @for _ in 0..7 { td.less {} }
                            @if self.bytes { td.less {} }
                            @if self.flops { td.less {} }
                        }
                    }
                }
                @for Row { at, series } in &group.launches {
                    @if let Some(launch) = &series.launch {
                        tr.row.launch data-site=(group.site) data-series=(at) {
                            th scope="row" {
                                div.name { (printable(&launch.label())) }
                                @if series.graph { small { "in graphs" } }
                            }
                            (self.cells(snapshot, series, None))
                        }
                    }
                }
            }
        }
    }

    fn calls(&self, calls: Option<u64>) -> Markup {
        html! {
            @match calls {
                Some(calls) => td.n.wide.less data-value=(calls) data-label="calls" { (units::count(calls)) },
                None => td.n.wide.less {},
            }
        }
    }

    fn cells(&self, snapshot: &Snapshot, series: &Series, calls: Option<u64>) -> Markup {
        let figures = series.shown().zip(series.total());
        let all = table::total(snapshot, series);
        let share = |total: f64| if all > 0.0 { total / all } else { 0.0 };
        let mark = if series.upper_bound { notes::UPPER_BOUND } else { "" };
        let raw = series.is_raw_by_launches();
        html! {
            @if self.keys { td.less { (printable(series.key.as_deref().unwrap_or_default())) } }
            td.on.less[!self.devices] {
                (printable(&series.device))
                @if series.clock == Clock::Sync { " " span.chip { (notes::SYNC) } }
            }
            td.cache { span class={ "chip " (series.cache()) } { (series.cache()) } }
            (self.calls(calls))
            td.n.less data-value=(series.measured) { (units::count(series.measured)) }
            @if let Some((stats, total)) = figures {
                td.n.bound[series.upper_bound] data-value=(stats.median) data-label={ "median, " (self.times.unit()) } {
                    (mark) (self.times.number(stats.median))
                    @if raw { " " span.chip { (notes::RAW) } }
                }
                td.n.wide.less data-value=(stats.p5) { (self.times.number(stats.p5)) }
                td.n.wide.less data-value=(stats.p95) { (self.times.number(stats.p95)) }
                td.spread title={ (units::time(stats.p5)) " – " (units::time(stats.p95)) } {
                    i style={
                        "--lo:" (self.place(stats.p5)) ";--mid:" (self.place(stats.median)) ";--hi:" (self.place(stats.p95))
                    } {}
                }
                td.n data-value=(total) data-label={ "total, " (self.totals.unit()) } { (self.totals.number(total)) }
                // Nodes are in no function's time, and not every replay was seen.
                @if series.graph {
                    td.n.share {}
                } @else {
                    td.n.share data-value=(share(total)) data-label="share" {
                        i style={ "--share:" (format!("{:.4}", share(total))) } {}
                        (units::share(total, all))
                    }
                }
            } @else {
                @for _ in 0..6 { td.less {} }
            }
            @let bound = if series.upper_bound { notes::LOWER_BOUND } else { "" };
            @if self.bytes {
                @match series.bytes.and_then(|bytes| Some((bytes.gb_per_s?, bytes.peak_share))) {
                    Some((rate, peak)) => {
                        td.n data-value=(rate) data-label="GB/s" {
                            (bound) (figure(rate))
                            @if let Some(peak) = peak { " " small.soft { (format!("{:.0}%", 100.0 * peak)) } }
                        }
                    }
                    None => td.n.less {},
                }
            }
            @if self.flops {
                @match series.flops.and_then(|flops| flops.tflop_per_s) {
                    Some(rate) => td.n data-value=(rate) data-label="TFLOP/s" { (bound) (figure(rate)) },
                    None => td.n.less {},
                }
            }
        }
    }

    /// Where a time stands among those of all rows, on a logarithmic scale.
    fn place(&self, ns: f64) -> String {
        let (low, high) = self.range;
        let at = if high > low { (ns.max(1.0).ln() - low) / (high - low) } else { 0.5 };
        format!("{:.1}%", 100.0 * at)
    }
}
