//! The table's cells as text, in order.

use super::column::{TableColumn, TableRow, Units};
use super::keys::HiddenKeys;
use crate::groups::{self, Group};
use crate::{Measure, Site, Snapshot, series};

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
    }
    if let Some(Group { site, .. }) = groups.first().filter(|_| hidden.len() > 0) {
        let (samples, total) = hidden.sum(groups);
        rows.push(TableRow::OtherKeys { site, keys: hidden.len(), samples, total });
    }
    rows
}
