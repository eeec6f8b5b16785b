//! The report as CSV: a header, then one line for each function and launch, as the table has them. Names are escaped as in
//! the table, so the file can safely be printed to a terminal.

use crate::analysis::Analysis;
use crate::column::{Column, Sheet};
use crate::groups::Group;
use crate::marks::Printed;
use crate::row::Row;
use crate::units::printable;
use crate::{Process, Series, Snapshot, groups};

/// The columns before and behind the figures of a row.
const BEFORE: [&str; 8] = ["function", "file", "line", "launch", "key", "device", "clock", "cache"];
const BEHIND: [&str; 4] = ["upper_bound", "label", "program_version", "host"];

/// The columns of the table that have figures, with their names. The figures have no other unit.
const FIGURES: [(Column, &str); 11] = [
    (Column::Calls, "calls"),
    (Column::Samples, "samples"),
    (Column::Median, "median_ns"),
    (Column::P5, "p5_ns"),
    (Column::P95, "p95_ns"),
    (Column::Own, "self_ns"),
    (Column::Total, "total_ns"),
    (Column::Error, "total_error"),
    (Column::Share, "share"),
    (Column::GbPerS, "gb_per_s"),
    (Column::TflopPerS, "tflop_per_s"),
];

impl Snapshot {
    /// Returns the CSV report: a header, then one line for each function, with each key, device, clock and cache state by
    /// itself, and for each launch. The JSON report has more figures, and the kernels.
    ///
    /// Times are in nanoseconds, and shares and errors are fractions. Control characters in names are escaped as in the
    /// table; everything else is unchanged. Spreadsheets interpret a name that begins with `=`, `+`, `-` or `@`, such as the
    /// key `-1`, as a formula unless its column is imported as text.
    pub fn to_csv(&self) -> String {
        self.analyzed(|analysis| analysis.csv(self))
    }
}

impl Analysis<'_> {
    /// Returns the CSV report. Functions have their names in `report`, because their location tells those that share a name
    /// apart.
    pub fn csv(&self, report: &Snapshot) -> String {
        let mut text = String::new();
        let names = FIGURES.map(|(_, name)| name);
        let header = BEFORE.into_iter().chain(names).chain(BEHIND).map(str::to_owned);
        write_line(&mut text, header);
        let printed = Printed::default();
        let sheet = Sheet::of(self, &printed, 0);
        for group in &groups::of(self) {
            for series in group.head.iter().chain(&group.launches) {
                let name = &report.sites[group.at].name;
                write_row(&mut text, name, group, series, &sheet);
            }
        }
        text
    }
}

fn write_row(text: &mut String, name: &str, group: &Group, series: &Series, sheet: &Sheet) {
    let Analysis { snapshot, shares, .. } = sheet.analysis;
    let (site, is_head) = (group.site, series.launch.is_none());
    let Process { label, program_version, host, .. } = &snapshot.process;
    let row = Row::of_series((group.at, site), series, shares, String::new());
    let calls = (is_head && group.has_calls).then_some(site.calls);
    let row = Row { calls, ..row };
    let known = |text: &Option<String>| text.as_deref().map(printable).unwrap_or_default();
    let before = [
        printable(name),
        printable(&site.file),
        site.line.to_string(),
        series.launch.as_ref().map(|launch| printable(&launch.label())).unwrap_or_default(),
        known(&series.key),
        printable(&series.device),
        series.clock.name().to_owned(),
        series.cache.name().to_owned(),
    ];
    let figures = FIGURES.iter().map(|(column, _)| {
        let value = column.cell(&row, sheet).and_then(|cell| cell.value);
        // Whole numbers have no decimals.
        value.map(|value| value.to_string()).unwrap_or_default()
    });
    let is_bound = series.is_bound().to_string();
    let behind = [is_bound, known(label), known(program_version), known(host)];
    write_line(text, before.into_iter().chain(figures).chain(behind));
}

/// Appends one line. Cells are quoted where RFC 4180 requires it.
fn write_line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            text.extend(["\"", &cell.replace('"', "\"\""), "\""]);
        } else {
            text.push_str(&cell);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests;
