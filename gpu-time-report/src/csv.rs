//! The report as CSV: a header, then one line for each function and launch, as the table has them. Names are escaped as in
//! the table, so the file can safely be printed to a terminal.

use crate::analysis::Analysis;
use crate::column::{Column, Sheet};
use crate::groups::Group;
use crate::marks::Printed;
use crate::row::Row;
use crate::units::printable;
use crate::{Launch, Process, Series, Site, Snapshot, groups};

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
    /// itself, and for each launch. Lines without a file are those of GPU time beside functions. The JSON report has more
    /// figures, and the kernels.
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
        for Group { at, site, head, launches, has_calls } in groups::of(self) {
            let name = Some((&*report.sites[at].name, site));
            let row = |series| Row::of_series((at, site), series, &self.shares, String::new());
            let function = head.map_or_else(|| Row::of(site, &[], String::new()), row);
            let calls = has_calls.then_some(site.calls);
            if head.is_some() || calls.is_some() {
                write_row(&mut text, name, &Row { calls, ..function }, &sheet);
            }
            launches
                .into_iter()
                .for_each(|launch| write_row(&mut text, name, &row(launch), &sheet));
        }
        for row in Row::beside_functions(&self.shares) {
            write_row(&mut text, None, &row, &sheet);
        }
        text
    }
}

/// Appends the line of a row: of this function, or of time beside functions.
fn write_row(text: &mut String, function: Option<(&str, &Site)>, row: &Row, sheet: &Sheet) {
    let Process { label, program_version, host, .. } = &sheet.analysis.snapshot.process;
    let known = |text: Option<&str>| text.map(printable).unwrap_or_default();
    let of_site = |of: fn(&Site) -> String| function.map(|(_, site)| of(site)).unwrap_or_default();
    let of_series = |of: fn(&Series) -> String| row.series.map(of).unwrap_or_default();
    let before = [
        printable(function.map_or(&row.label, |(name, _)| name)),
        of_site(|site| printable(&site.file)),
        of_site(|site| site.line.to_string()),
        known(row.series.and_then(|series| series.launch.as_ref()).map(Launch::label).as_deref()),
        known(row.series.and_then(|series| series.key.as_deref())),
        of_series(|series| printable(&series.device)),
        of_series(|series| series.clock.name().to_owned()),
        of_series(|series| series.cache.name().to_owned()),
    ];
    let figures = FIGURES.iter().map(|(column, _)| {
        let value = column.cell(row, sheet).and_then(|cell| cell.value);
        // Whole numbers have no decimals.
        value.map(|value| value.to_string()).unwrap_or_default()
    });
    let is_bound = of_series(|series| series.is_bound().to_string());
    let process = [label, program_version, host].map(|text| known(text.as_deref()));
    let behind = std::iter::once(is_bound).chain(process);
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
