//! The report as CSV: a header, then one line for each function and launch, as the table has them. Names are escaped as in
//! the table, so the file can safely be printed to a terminal.

use crate::analysis::Analysis;
use crate::column::{Column, Sheet};
use crate::marks::Printed;
use crate::row::Row;
use crate::units::printable;
use crate::{Launch, Process, Series, Site, Snapshot, groups};

/// The columns before and behind the figures of a row.
const BEFORE: [&str; 8] = ["function", "file", "line", "launch", "key", "device", "clock", "cache"];
const BEHIND: [&str; 4] = ["upper_bound", "label", "program_version", "host"];

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
        let names = Column::ALL.into_iter().filter_map(Column::csv);
        let header = BEFORE.into_iter().chain(names).chain(BEHIND).map(str::to_owned);
        write_line(&mut text, header);
        let printed = Printed::default();
        let sheet = Sheet::of(self, &printed, 0);
        for group in groups::of(self) {
            let name = Some((&*report.sites[group.at].name, group.site));
            if group.head.is_some() || group.has_calls {
                write_row(&mut text, name, &group.row(None, &self.shares), &sheet);
            }
            for launch in &group.launches {
                write_row(&mut text, name, &group.row(Some(launch), &self.shares), &sheet);
            }
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
    let columns = Column::ALL.into_iter().filter(|column| column.csv().is_some());
    let figures = columns.map(|column| {
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
