//! The table's cells as text, in order.

use super::column::{KERNEL_INDENT, TableColumn, TableRow, Units};
use super::function::{Function, Shown};
use crate::marks::Printed;
use crate::own_times::Shares;
use crate::units::printable;
use crate::{Detail, Snapshot, groups};

/// The maximum number of rows at which functions show details: launches, keys and kernels. Together
/// with the lines above and below, they fit on a screen of 40 lines.
const ROWS: usize = 16;

/// A header and rows. Every row has a cell for each column.
pub struct Grid {
    columns: Vec<TableColumn>,
    pub header: Vec<String>,
    pub rows: Vec<Line>,
    /// The number of rows with details that the table omits.
    pub omitted: usize,
    /// The number of functions that the table omits.
    pub omitted_functions: usize,
}

/// A row, which is one line of text.
pub struct Line {
    /// `true` for the row of a function, `false` for a detail or a sum.
    pub is_function: bool,
    /// The name of a kernel, and the launch configuration that follows it.
    pub kernel: Option<(String, String)>,
    /// A text as wide as the table. The cells are then empty.
    pub wide: Option<String>,
    pub cells: Vec<String>,
}

impl Grid {
    /// Creates rows for the functions that were called, longest total first, each followed by its
    /// details. `most` limits the number of functions. Without any series, there are only names and
    /// numbers of calls.
    pub fn of(snapshot: &Snapshot, detail: Detail, most: Option<usize>, printed: &Printed) -> Grid {
        let groups = groups::of(snapshot);
        let has_series = groups.iter().any(|g| g.head.is_some() || !g.launches.is_empty());
        let columns = if has_series {
            TableColumn::of(snapshot, detail)
        } else {
            vec![TableColumn::Function, TableColumn::Calls]
        };
        let (units, shares) = (Units::of(snapshot), &Shares::of(snapshot));
        let by_function = groups.chunk_by(|a, b| a.at == b.at);
        let mut functions: Vec<Function> =
            by_function.map(|groups| Function { snapshot, shares, groups }).collect();
        functions.sort_by(|a, b| b.longest().total_cmp(&a.longest()));
        // A row "and 1 more function" would be no shorter than the function's own.
        let most = most.filter(|most| functions.len() > most + 1).unwrap_or(functions.len());
        let (functions, others) = functions.split_at(most);
        let (mut rows, omitted) = rows(functions, detail);
        if !others.is_empty() {
            let shares = others.iter().filter_map(|function| function.share(function.groups));
            let share = shares.reduce(|sum, share| sum + share);
            rows.push(TableRow::OtherFunctions { functions: others.len(), share });
        }
        let windows_only = shares.windows_only().iter();
        rows.extend(
            windows_only.map(|node| TableRow::FromWindows { node, share: shares.of_path(node) }),
        );
        let rows = rows.into_iter().map(|row| Line {
            is_function: row.is_function(),
            kernel: match &row {
                TableRow::Kernel { kernel, .. } => {
                    Some((printable(&kernel.name), row.configuration().unwrap_or_default()))
                }
                _ => None,
            },
            wide: match &row {
                TableRow::Opened { line } => Some(format!("{KERNEL_INDENT}{line}")),
                _ => None,
            },
            cells: columns.iter().map(|column| column.cell(&row, &units, printed)).collect(),
        });
        let rows = rows.collect();
        let header = columns.iter().map(|column| column.header(&units)).collect();
        Grid { header, rows, columns, omitted, omitted_functions: others.len() }
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

/// Returns the rows of all functions, and the number of rows left out for lack of room. The
/// functions with the most time come first, and each of them may use at least half of the room that
/// the functions before it left.
fn rows<'a>(functions: &[Function<'a>], detail: Detail) -> (Vec<TableRow<'a>>, usize) {
    let of_all = |shown| functions.iter().map(move |function| function.rows(shown));
    let all: Vec<TableRow> = of_all(Shown::ALL).flatten().collect();
    if detail == Detail::All {
        return (all, 0);
    }
    let below = |rows: &[TableRow]| rows.iter().filter(|row| !row.is_function()).count();
    let wanted: Vec<Vec<TableRow>> = of_all(Shown::MOST).collect();
    let own: usize = wanted.iter().map(|rows| rows.len() - below(rows)).sum();
    let mut later: usize = wanted.iter().map(|rows| below(rows)).sum();
    let mut room = ROWS.saturating_sub(own);
    let mut rows = Vec::new();
    for (function, wanted) in functions.iter().zip(wanted) {
        later -= below(&wanted);
        let most = room.div_ceil(2).max(room.saturating_sub(later));
        let shown = if below(&wanted) <= most { wanted } else { function.within(most) };
        room -= below(&shown);
        rows.extend(shown);
    }
    let omitted = all.len() - rows.len();
    (rows, omitted)
}
