//! The columns of the page's table. To add one, add a variant here and an arm in each method.

use maud::{Markup, html};

use crate::html::prose::path;
use crate::marks::Printed;
use crate::own_times::{Share, Shares};
use crate::scale::Scale;
use crate::units::{self, figure, printable};
use crate::{Clock, Node, Series, Site, Snapshot, Stats, launch_bound, marks, opened};

/// The number of digits shown for most times.
const DIGITS: u8 = 3;

/// A column, in order from left to right. Its stylesheet class hides it if it does not fit: `wide`
/// in a small window, `less` on a phone.
#[derive(Clone, Copy, PartialEq)]
pub enum PageColumn {
    Function,
    Key,
    On,
    Cache,
    Calls,
    Samples,
    Median,
    P5,
    P95,
    /// A bar from p5 to p95.
    Spread,
    Total,
    Share,
    GbPerS,
    TflopPerS,
}

/// Values shared by the cells of all rows.
pub struct Sheet<'a> {
    snapshot: &'a Snapshot,
    printed: &'a Printed,
    shares: Shares<'a>,
    times: Scale,
    totals: Scale,
    /// The ends of the axis for [`PageColumn::Spread`]: the shortest p5 and the longest p95 over
    /// all rows, as natural logarithms.
    axis: (f64, f64),
}

/// A row: a function, or one of its launches.
pub struct PageRow<'a> {
    pub site: &'a Site,
    /// `None` for a function that has no own series.
    pub series: Option<&'a Series>,
    /// The number of calls, for the row that shows it.
    pub calls: Option<u64>,
}

impl PageColumn {
    /// Returns the columns for a report. Keys and rates have a column only if any row has one.
    pub fn of(snapshot: &Snapshot) -> Vec<PageColumn> {
        use PageColumn::*;
        let any = |has: fn(&Series) -> bool| snapshot.all_series().any(has);
        let mut columns = vec![Function];
        columns.extend(any(|series| series.key.is_some()).then_some(Key));
        columns.extend([On, Cache, Calls, Samples, Median, P5, P95, Spread, Total]);
        columns.extend(Shares::of(snapshot).are_known().then_some(Share));
        columns.extend(any(|series| series.bytes.is_some()).then_some(GbPerS));
        columns.extend(any(|series| series.flops.is_some()).then_some(TflopPerS));
        columns
    }

    pub fn header(self, is_sorted_by: bool, sheet: &Sheet) -> Markup {
        let (times, totals) = (sheet.times.unit().name(), sheet.totals.unit().name());
        let order = is_sorted_by.then_some("descending");
        html! {
            @match self {
                PageColumn::Function => th data-sortable { "function" },
                PageColumn::Key => th data-sortable { "key" },
                PageColumn::On => th data-sortable { "on" },
                PageColumn::Cache => th data-sortable { "cache" },
                PageColumn::Calls => th.n.wide data-sortable { "calls" },
                PageColumn::Samples => th.n data-sortable { "samples" },
                PageColumn::Median => th.n data-sortable { "median " small { (times) } },
                PageColumn::P5 => th.n.wide data-sortable { "p5 " small { (times) } },
                PageColumn::P95 => th.n.wide data-sortable { "p95 " small { (times) } },
                PageColumn::Spread => th { "p5–p95 " small { "log" } },
                PageColumn::Total => {
                    th.n data-sortable aria-sort=[order] { "total " small { (totals) } }
                }
                PageColumn::Share => {
                    th.n data-sortable aria-sort=[order] { "share " small { "of GPU time" } }
                }
                PageColumn::GbPerS => th.n data-sortable { (marks::GB_PER_S) },
                PageColumn::TflopPerS => th.n data-sortable { (marks::TFLOP_PER_S) },
            }
        }
    }

    /// Returns the cell for a row.
    pub fn cell(self, row: &PageRow, sheet: &Sheet) -> Markup {
        self.filled(row, sheet).unwrap_or_else(|| match self {
            PageColumn::Calls | PageColumn::P5 | PageColumn::P95 => html! { td.wide.less {} },
            _ => html! { td.less {} },
        })
    }

    /// Returns the cell for a row of work that only phases found.
    pub fn of_windows(self, node: &Node, sheet: &Sheet) -> Markup {
        match self {
            PageColumn::Function => html! { th scope="row" { div.name { (node.windows_name()) } } },
            PageColumn::Total => html! {
                td.n data-label={ "total, " (sheet.totals.unit().name()) } {
                    (sheet.printed.bound(node.upper_bound)) (sheet.printed.print(marks::ESTIMATE))
                    (sheet.totals.text(node.self_ns))
                    " " small.soft { (node.self_error()) }
                }
            },
            PageColumn::Share => share_cell(sheet.shares.of_path(node), sheet.printed),
            PageColumn::Calls | PageColumn::P5 | PageColumn::P95 => html! { td.n.wide.less {} },
            _ => html! { td.less {} },
        }
    }

    /// Returns `None` if the column does not apply to the row.
    fn filled(self, row: &PageRow, sheet: &Sheet) -> Option<Markup> {
        if self == PageColumn::Function {
            return Some(row.name(sheet.printed));
        }
        if self == PageColumn::Calls {
            let calls = row.calls?;
            return Some(html! {
                td.n.wide.less data-value=(calls) data-label="calls" { (units::count(calls)) }
            });
        }
        let Sheet { times, totals, printed, .. } = sheet;
        let series = row.series?;
        Some(match self {
            PageColumn::Function | PageColumn::Calls => return None,
            PageColumn::Key => {
                html! { td.keyed.less { (printable(series.key.as_deref().unwrap_or_default())) } }
            }
            PageColumn::On => html! {
                td.on.less[sheet.snapshot.devices.len() <= 1] {
                    @if series.clock == Clock::Host {
                        (printed.print(marks::HOST))
                    } @else {
                        (series.shown_device())
                    }
                    @if series.clock == Clock::Sync { " " span.chip { (printed.print(marks::SYNC)) } }
                    @if series.clock == Clock::Kernels {
                        " " span.chip { (printed.print(marks::KERNELS)) }
                    }
                }
            },
            PageColumn::Cache => html! {
                td.cache { span class={ "chip " (series.cache.name()) } { (series.cache.name()) } }
            },
            PageColumn::Samples => html! {
                td.n.less data-value=(series.samples()) { (units::count(series.samples())) }
            },
            PageColumn::Median => {
                let median = series.shown()?.median;
                let is_bound = series.is_bound();
                html! {
                    td.n.bound[is_bound] data-value=(median)
                        data-label={ "median, " (times.unit().name()) }
                    {
                        (printed.bound(is_bound)) (times.text(median))
                        @if series.is_raw_by_launches() { " " span.chip { (printed.print(marks::RAW)) } }
                    }
                }
            }
            PageColumn::P5 => {
                let Stats { p5, .. } = series.shown()?;
                html! { td.n.wide.less data-value=(p5) { (times.text(*p5)) } }
            }
            PageColumn::P95 => {
                let Stats { p95, .. } = series.shown()?;
                html! { td.n.wide.less data-value=(p95) { (times.text(*p95)) } }
            }
            PageColumn::Spread => {
                let Stats { p5, median, p95, .. } = *series.shown()?;
                let [low, middle, high] = [p5, median, p95].map(|ns| sheet.on_axis(ns));
                html! {
                    td.spread title={ (units::time(p5)) " – " (units::time(p95)) } {
                        i style={ "--lo:" (low) ";--mid:" (middle) ";--hi:" (high) } {}
                    }
                }
            }
            PageColumn::Total => {
                let total = series.shown().and(series.total())?;
                let error = series.total_error().filter(|_| row.site.is_sampled());
                html! {
                    td.n data-value=(total) data-label={ "total, " (totals.unit().name()) } {
                        (printed.bound(series.is_total_bound()))
                        @match error {
                            Some(error) => {
                                (printed.print(marks::ESTIMATE)) (totals.text(total))
                                " " small.soft { "±" (units::share(error, total)) }
                            }
                            None if series.unknown_error.is_some() => {
                                (printed.print(marks::ESTIMATE)) (totals.text(total))
                                " " small.soft { "±?" }
                            }
                            None => (totals.text(total)),
                        }
                    }
                }
            }
            PageColumn::Share => share_cell(sheet.shares.of_row(row.site, series), sheet.printed),
            PageColumn::GbPerS => {
                let bytes = series.bytes?;
                let rate = bytes.gb_per_s?;
                html! {
                    td.n data-value=(rate) data-label=(marks::GB_PER_S) {
                        (printed.mark(series.is_bound(), marks::LOWER_BOUND)) (figure(rate))
                        @if let Some(peak) = bytes.peak_share {
                            @let _ = printed.print(marks::GB_PER_S);
                            " " small.soft { (format!("{:.0}%", 100.0 * peak)) }
                        }
                    }
                }
            }
            PageColumn::TflopPerS => {
                let rate = series.flops?.tflop_per_s?;
                html! {
                    td.n data-value=(rate) data-label=(marks::TFLOP_PER_S) {
                        (printed.mark(series.is_bound(), marks::LOWER_BOUND)) (figure(rate))
                    }
                }
            }
        })
    }
}

impl<'a> Sheet<'a> {
    /// Returns the work that is not annotated, if phases measured it.
    pub fn windows_only(&self) -> &[&'a Node] {
        self.shares.windows_only()
    }

    pub fn of(snapshot: &'a Snapshot, printed: &'a Printed) -> Sheet<'a> {
        let shown = || snapshot.all_series().filter_map(Series::shown);
        let ends = shown().flat_map(|stats| [stats.p5.max(1.0).ln(), stats.p95.max(1.0).ln()]);
        Sheet {
            snapshot,
            printed,
            shares: Shares::of(snapshot),
            times: Scale::of(shown().map(|stats| stats.median), DIGITS),
            totals: Scale::of(snapshot.all_series().filter_map(Series::total), DIGITS),
            axis: ends.fold((f64::MAX, 0.0), |(low, high), end| (end.min(low), end.max(high))),
        }
    }

    /// Returns the position of a time on the logarithmic axis shared by all rows.
    fn on_axis(&self, ns: f64) -> String {
        let (low, high) = self.axis;
        let at = if high > low { (ns.max(1.0).ln() - low) / (high - low) } else { 0.5 };
        format!("{:.1}%", 100.0 * at)
    }
}

impl PageRow<'_> {
    fn name(&self, printed: &Printed) -> Markup {
        let series = self.series;
        let launch = series.and_then(|series| series.launch.as_ref());
        let launches = series.and_then(|series| series.launches).filter(|all| all.max != 1);
        html! {
            th scope="row" {
                @match launch {
                    Some(launch) => {
                        div.name { (printable(&launch.label())) }
                        @if series.is_some_and(|series| series.graph) {
                            @let _ = printed.print(marks::GRAPH);
                            small { "in graphs" }
                        }
                    }
                    None => {
                        div.name { (path(&self.site.name)) }
                        @if let Some(launches) = launches { small { (launches.label()) } }
                        @if let Some(opened) = series.and_then(opened::label) {
                            @match series.and_then(|series| launch_bound::of_row(self.site, series)) {
                                Some(sides) => small {
                                    span.chip.waited { "launch-bound" }
                                    span.sides {
                                        " " (opened) @if !sides.is_empty() { "; " (sides) }
                                    }
                                },
                                None => small { (opened) },
                            }
                        }
                    }
                }
            }
        }
    }
}

fn share_cell(share: Option<Share>, printed: &Printed) -> Markup {
    html! {
        @match share {
            Some(share) => td.n.share data-value=(share.of_all) data-label="share" {
                i style={ "--share:" (format!("{:.4}", share.of_all)) } {}
                (share.text(printed))
            },
            None => td.n.share {},
        }
    }
}
