//! The table's cells as text, in order.

use super::column::{TableColumn, TableRow, Units};
use super::keys::HiddenKeys;
use crate::groups::{self, Group};
use crate::units::printable;
use crate::{Measure, Series, Site, Snapshot, opened, series};

/// A header and rows. Every row has a cell for each column.
pub struct Grid {
    columns: Vec<TableColumn>,
    pub header: Vec<String>,
    pub rows: Vec<Line>,
}

/// A row. A cell may span several lines of text.
pub struct Line {
    /// The row belongs to the function above it.
    pub is_below_function: bool,
    pub is_kernel: bool,
    /// A text that is as wide as the table. The cells are empty then.
    pub wide: Option<String>,
    pub cells: Vec<String>,
}

impl Grid {
    /// Creates rows for every function that was called, longest total first, each followed by its
    /// launches. Without any series, shows only names and numbers of calls.
    pub fn of(snapshot: &Snapshot) -> Grid {
        let mut groups = groups::of(snapshot);
        // Keep all groups of a function together, starting with the one that shows the number of
        // calls.
        let totals: Vec<f64> = snapshot.sites.iter().map(total).collect();
        groups.sort_by(|a, b| {
            let [ours, theirs] =
                [a, b].map(|group| totals.get(group.at).copied().unwrap_or_default());
            theirs.total_cmp(&ours).then(a.at.cmp(&b.at))
        });
        let has_series = groups.iter().any(|g| g.head.is_some() || !g.launches.is_empty());
        let columns = if has_series {
            TableColumn::of(snapshot)
        } else {
            vec![TableColumn::Function, TableColumn::Calls]
        };
        let units = Units::of(snapshot);
        let by_function = groups.chunk_by(|a, b| a.at == b.at);
        let rows = by_function.flat_map(|groups| rows(snapshot, groups)).map(|row| Line {
            is_below_function: row.is_below_function(),
            is_kernel: matches!(row, TableRow::Kernel { .. }),
            wide: match &row {
                TableRow::Opened { line } => Some(line.clone()),
                _ => None,
            },
            cells: columns.iter().map(|column| column.cell(&row, &units)).collect(),
        });
        let rows = rows.collect();
        Grid { header: columns.iter().map(|column| column.header(&units)).collect(), rows, columns }
    }

    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// Returns the cell in a column, or `None` if the table lacks that column.
    pub fn cell<'a>(&self, line: &'a Line, column: TableColumn) -> Option<&'a str> {
        line.cells.get(self.place(column)?).map(String::as_str)
    }

    /// Replaces the cells of a column, from the first row to the last.
    pub fn set(&mut self, column: TableColumn, texts: Vec<String>) {
        let Some(place) = self.place(column) else { return };
        for (line, text) in self.rows.iter_mut().zip(texts) {
            if let Some(cell) = line.cells.get_mut(place) {
                *cell = text;
            }
        }
    }

    fn place(&self, column: TableColumn) -> Option<usize> {
        self.columns.iter().position(|&other| other == column)
    }
}

/// Returns the total time for a function, over all devices, cache states and keys.
fn total(site: &Site) -> f64 {
    series::total(site.series.iter().filter(|series| series.measure != Measure::Launch))
}

/// Returns one function's rows, from all of its groups.
fn rows<'a>(snapshot: &'a Snapshot, groups: &[Group<'a>]) -> Vec<TableRow<'a>> {
    let hidden = HiddenKeys::of(groups);
    let mut rows = Vec::new();
    for Group { site, head, launches, has_calls, .. } in groups {
        let calls = has_calls.then_some(site.calls);
        match head {
            Some(head) if hidden.has(head.series) => continue,
            Some(head) => {
                rows.push(TableRow::Series { snapshot, site, series: head.series, calls })
            }
            None => rows.push(TableRow::Untimed { site, calls }),
        }
        let shown = launches.iter().filter(|row| !hidden.has(row.series));
        rows.extend(shown.map(|row| TableRow::Series {
            snapshot,
            site,
            series: row.series,
            calls: None,
        }));
        rows.extend(head.iter().flat_map(|head| kernels(snapshot, head.series)));
    }
    if let Some(Group { site, .. }) = groups.first().filter(|_| hidden.len() > 0) {
        let (samples, total) = hidden.sum(groups);
        rows.push(TableRow::OtherKeys { site, keys: hidden.len(), samples, total });
    }
    rows
}

/// The number of kernels that the table shows per series.
const KERNELS: usize = 5;

/// Returns the rows about the opened calls of a series, with its largest kernels.
fn kernels<'a>(snapshot: &Snapshot, series: &'a Series) -> Vec<TableRow<'a>> {
    let device = snapshot.devices.iter().find(|device| device.id == series.device);
    let Some(line) = opened::line(series, device) else { return Vec::new() };
    let all = series.kernel_times.as_ref().map_or(&[][..], |times| &times.kernels);
    // A row "and 1 more" would be no shorter than the kernel itself.
    let shown = if all.len() > KERNELS + 1 { KERNELS } else { all.len() };
    let (shown, others) = all.split_at_checked(shown).unwrap_or((all, &[]));
    let mut rows = vec![TableRow::Opened { line: format!("  {}", printable(&line)) }];
    rows.extend(shown.iter().map(|kernel| TableRow::Kernel {
        kernel,
        is_ambiguous: shown.iter().filter(|other| other.name == kernel.name).count() > 1,
    }));
    if !others.is_empty() {
        let share = others.iter().fold(0.0, |sum, kernel| sum + kernel.share);
        rows.push(TableRow::OtherKernels { kernels: others.len(), share });
    }
    rows
}
