//! The cells of the page's table.

use maud::{Markup, html};

use crate::analysis::Analysis;
use crate::column::{Cell, Column, Sheet};
use crate::html::prose::path;
use crate::marks::Printed;
use crate::own_times::Shares;
use crate::row::Row;
use crate::units::{self, printable};
use crate::{Series, Site, Stats, launch_bound, opened};

/// The number of digits shown for most times.
const DIGITS: u8 = 3;

/// Values shared by the cells of all rows of the page.
pub struct PageSheet<'t, 'a> {
    pub sheet: Sheet<'t>,
    pub shares: &'t Shares<'a>,
    has_several_devices: bool,
    /// The ends of the axis for [`Column::Spread`]: the shortest p5 and the longest p95 over
    /// all rows, as natural logarithms.
    axis: (f64, f64),
}

/// Returns the columns of the page. The errors of totals stand beside them.
pub fn columns(analysis: &Analysis, sheet: &PageSheet) -> Vec<Column> {
    let fits = |column: &Column| match column {
        Column::Error => false,
        Column::Share => sheet.shares.are_known(),
        _ => true,
    };
    Column::of(analysis).filter(fits).collect()
}

impl Column {
    pub fn th(self, is_sorted_by: bool, page: &PageSheet) -> Markup {
        let unit = self.unit(&page.sheet);
        let (class, unit) = match self {
            Column::Spread => (None, "log"),
            Column::Share => (Some("n"), "of GPU time"),
            Column::Calls | Column::P5 | Column::P95 => (Some("n wide"), unit),
            _ => (self.is_right().then_some("n"), unit),
        };
        html! {
            th class=[class] data-sortable[self != Column::Spread]
                aria-sort=[is_sorted_by.then_some("descending")]
            {
                (self.name()) @if !unit.is_empty() { " " small { (unit) } }
            }
        }
    }

    /// Returns the cell for a row.
    pub fn td(self, row: &Row, page: &PageSheet) -> Markup {
        let cell = self.cell(row, &page.sheet);
        // Stylesheet classes hide a cell that does not fit: `wide` in a small window, `less` on a phone.
        let (class, is_less) = match self {
            Column::Key => ("keyed", true),
            Column::On => ("on", !page.has_several_devices),
            Column::Cache => ("cache", false),
            Column::Calls | Column::P5 | Column::P95 => ("n wide", true),
            Column::Own => ("n", true),
            Column::Samples => ("n", true),
            Column::Spread => ("spread", false),
            Column::Share => ("n share", false),
            _ => ("n", false),
        };
        let is_bound = self == Column::Median && row.series.is_some_and(Series::is_bound);
        let is_less = is_less || cell.is_none();
        let Cell { text, chip, note, value } = cell.unwrap_or_default();
        let label = (!is_less && value.is_some()).then(|| {
            format!("{}, {}", self.name(), self.unit(&page.sheet)).trim_end_matches(", ").to_owned()
        });
        let range = row.stats.filter(|_| self == Column::Spread);
        let range = range.map(|Stats { p5, p95, .. }| [*p5, *p95].map(units::time).join(" – "));
        let error = Column::Error.cell(row, &page.sheet).filter(|_| self == Column::Total);
        html! {
            td class={ (class) @if is_bound { " bound" } @if is_less { " less" } }
                data-value=[value] data-label=[label] title=[range]
            {
                @match self {
                    Column::Cache if !is_less => span class={ "chip " (text) } { (text) },
                    Column::Spread => @if let Some(stats) = row.stats { (page.spread(stats)) },
                    _ => {
                        @if let Some(share) = value.filter(|_| self == Column::Share) {
                            i style={ "--share:" (format!("{share:.4}")) } {}
                        }
                        (text)
                        @if let Some(chip) = chip { " " span.chip { (chip) } }
                        @if let Some(note) = note { " " small.soft { (note) } }
                        @if let Some(error) = error { " " small.soft { (Column::Error.name()) (error.text) } }
                    }
                }
            }
        }
    }
}

impl<'t, 'a> PageSheet<'t, 'a> {
    pub fn of(analysis: &'t Analysis<'a>, printed: &'t Printed) -> PageSheet<'t, 'a> {
        let snapshot = analysis.snapshot;
        let shown = snapshot.all_series().filter_map(Series::shown);
        let ends = shown.flat_map(|stats| [stats.p5.max(1.0).ln(), stats.p95.max(1.0).ln()]);
        PageSheet {
            sheet: Sheet::of(analysis, printed, DIGITS),
            shares: &analysis.shares,
            has_several_devices: snapshot.devices.len() > 1,
            axis: ends.fold((f64::MAX, 0.0), |(low, high), end| (end.min(low), end.max(high))),
        }
    }

    /// Renders a bar from p5 to p95 on the logarithmic axis that all rows share.
    fn spread(&self, stats: &Stats) -> Markup {
        let Stats { p5, median, p95, .. } = *stats;
        let (low, high) = self.axis;
        let [left, middle, right] = [p5, median, p95].map(|ns| {
            let at = if high > low { (ns.max(1.0).ln() - low) / (high - low) } else { 0.5 };
            format!("{:.1}%", 100.0 * at)
        });
        html! {
            i style={ "--lo:" (left) ";--mid:" (middle) ";--hi:" (right) } {}
        }
    }
}

/// Renders the name of a function, or of one of its launches.
pub fn name(site: &Site, series: Option<&Series>) -> Markup {
    let launch = series.and_then(|series| series.launch.as_ref());
    let launches = series.and_then(|series| series.launches).filter(|all| all.max != 1);
    html! {
        th scope="row" {
            @match launch {
                Some(launch) => {
                    div.name { (printable(&launch.label())) }
                    @if series.is_some_and(|series| series.graph) {
                        small { "in graphs" }
                    }
                }
                None => {
                    div.name { (path(&site.name)) }
                    @if let Some(launches) = launches { small { (launches.label()) } }
                    @if let Some(opened) = series.and_then(opened::label) {
                        @match series.and_then(|series| launch_bound::of_row(site, series)) {
                            Some(sides) => small {
                                span.chip.waited { "waits for the CPU" }
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
