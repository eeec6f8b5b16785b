//! The table: a function and its launches are a group, and groups stand in the order of their totals.

use maud::{Markup, html};

use crate::groups::{self, Group, Row};
use crate::scale::Scale;
use crate::table::sum_of;
use crate::units::{self, figure, printable};
use crate::{Clock, Series, Site, Snapshot, notes, table};

/// The digits of most times.
const DIGITS: u8 = 3;

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
    let groups = groups::of(snapshot);
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

impl Columns {
    fn of(snapshot: &Snapshot) -> Columns {
        let all = || snapshot.sites.iter().flat_map(|site| &site.series);
        let shown = || all().filter_map(Series::shown);
        let ends = shown().flat_map(|stats| [stats.p5.max(1.0).ln(), stats.p95.max(1.0).ln()]);
        Columns {
            times: Scale::of(shown().map(|stats| stats.median), DIGITS),
            totals: Scale::of(all().filter_map(Series::total), DIGITS),
            range: ends.fold((f64::MAX, 0.0), |(low, high), end| (end.min(low), end.max(high))),
            keys: all().any(|series| series.key.is_some()),
            devices: snapshot.devices.len() > 1,
            bytes: all().any(|series| series.bytes.is_some()),
            flops: all().any(|series| series.flops.is_some()),
        }
    }

    fn head(&self) -> Markup {
        let (times, totals) = (self.times.unit().name(), self.totals.unit().name());
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
                            (self.cells(snapshot, site, series, calls))
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
                            (self.cells(snapshot, site, series, None))
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

    fn cells(
        &self,
        snapshot: &Snapshot,
        site: &Site,
        series: &Series,
        calls: Option<u64>,
    ) -> Markup {
        let figures = series.shown().zip(series.total());
        let all = table::total(snapshot, series);
        let share = |total: f64| if all > 0.0 { total / all } else { 0.0 };
        let mark = if series.upper_bound { notes::UPPER_BOUND } else { "" };
        let raw = series.is_raw_by_launches();
        html! {
            @if self.keys { td.keyed.less { (printable(series.key.as_deref().unwrap_or_default())) } }
            td.on.less[!self.devices] {
                (printable(&series.device))
                @if series.clock == Clock::Sync { " " span.chip { (notes::SYNC) } }
            }
            td.cache { span class={ "chip " (series.cache()) } { (series.cache()) } }
            (self.calls(calls))
            td.n.less data-value=(series.measured) { (units::count(series.measured)) }
            @if let Some((stats, total)) = figures {
                td.n.bound[series.upper_bound] data-value=(stats.median) data-label={ "median, " (self.times.unit().name()) } {
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
                td.n data-value=(total) data-label={ "total, " (self.totals.unit().name()) } {
                    @match series.estimated_total_error_ns.filter(|_| site.is_sampled()) {
                        Some(error) => {
                            (notes::ESTIMATE) (self.totals.number(total))
                            " " small.soft { "±" (units::share(error, total)) }
                        }
                        None => (self.totals.number(total)),
                    }
                }
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
