//! The cells of the page's table.

use maud::{Markup, html};

use crate::analysis::Analysis;
use crate::column::{Cell, Column, Sheet};
use crate::html::prose::path;
use crate::row::Row;
use crate::units::printable;
use crate::{Series, Site, launch_bound, opened};

/// Returns the columns of the page. The errors of totals stand beside them.
pub fn columns(analysis: &Analysis) -> Vec<Column> {
    let fits = |column: &Column| match column {
        Column::P5 | Column::P95 | Column::Error => false,
        Column::Share => analysis.shares.are_known(),
        _ => true,
    };
    Column::of(analysis).filter(fits).collect()
}

impl Column {
    pub fn th(self, is_sorted_by: bool, page: &Sheet) -> Markup {
        let unit = self.unit(page);
        let (class, unit) = match self {
            Column::Share => (Some("n"), "of GPU time"),
            Column::Calls => (Some("n wide"), unit),
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
    pub fn td(self, row: &Row, page: &Sheet) -> Markup {
        let cell = self.cell(row, page);
        // Stylesheet classes hide a cell that does not fit: `wide` in a small window, `less` on a phone.
        let (class, is_less) = match self {
            Column::Key => ("keyed", true),
            Column::On => ("on", page.analysis.snapshot.devices.len() <= 1),
            Column::Cache => ("cache", false),
            Column::Calls => ("n wide", true),
            Column::Own => ("n", true),
            Column::Samples => ("n", true),
            Column::Share => ("n share", false),
            _ => ("n", false),
        };
        let is_bound = self == Column::Median && row.series.is_some_and(Series::is_bound);
        let is_less = is_less || cell.is_none();
        let Cell { text, chip, note, value } = cell.unwrap_or_default();
        let label = (!is_less && (value.is_some() || self == Column::Spread)).then(|| {
            format!("{}, {}", self.name(), self.unit(page)).trim_end_matches(", ").to_owned()
        });
        let error = Column::Error.cell(row, page).filter(|_| self == Column::Total);
        html! {
            td class={ (class) @if is_bound { " bound" } @if is_less { " less" } }
                data-value=[value] data-label=[label]
            {
                @match self {
                    Column::Cache if !is_less => span class={ "chip " (text) } { (text) },
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
