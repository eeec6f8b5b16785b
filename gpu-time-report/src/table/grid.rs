//! The table's cells as text, in order.

use super::function::{Function, Shown};
use crate::analysis::Analysis;
use crate::column::{Cell, Column, Sheet};
use crate::marks::Printed;
use crate::own_times::Shares;
use crate::row::Row;
use crate::{Detail, Snapshot, groups, units};

/// The number of digits shown for most times.
const DIGITS: u8 = 4;

/// The maximum number of rows at which functions show details: launches, keys and kernels. Together
/// with the lines above and below, they fit on a screen of 40 lines.
const ROWS: usize = 16;

/// A header and rows. Every row has a cell for each column.
pub struct Grid<'a> {
    pub columns: Vec<Column>,
    pub header: Vec<String>,
    pub rows: Vec<(Row<'a>, Vec<String>)>,
    /// The number of rows with details that the table omits.
    pub omitted: usize,
    /// The number of functions that the table omits.
    pub omitted_functions: usize,
}

impl<'a> Grid<'a> {
    /// Creates rows for the functions that were called, longest total first, each followed by its
    /// details. `most` limits the number of functions. Without any series, there are only names and
    /// numbers of calls.
    pub fn of(
        analysis: &Analysis<'a>,
        detail: Detail,
        most: Option<usize>,
        printed: &Printed,
    ) -> Grid<'a> {
        let Analysis { snapshot, shares, .. } = analysis;
        let groups = groups::of(snapshot);
        let sheet = Sheet::of(analysis, printed, DIGITS);
        let by_function = groups.chunk_by(|a, b| a.at == b.at);
        let mut functions: Vec<Function> =
            by_function.map(|groups| Function { snapshot, shares, groups }).collect();
        functions.sort_by(|a, b| b.longest().total_cmp(&a.longest()));
        // A row "and 1 more function" would be no shorter than the function's own.
        let most = most.filter(|most| functions.len() > most + 1).unwrap_or(functions.len());
        let (functions, others) = functions.split_at(most);
        let (mut rows, omitted) = rows(functions, detail);
        if !others.is_empty() {
            let label = format!("and {} more functions", units::count(others.len() as u64));
            let known = others.iter().filter_map(|function| function.share(function.groups));
            let share = known.reduce(|sum, share| sum + share);
            rows.push(Row { label, share, ..Row::default() });
        }
        rows.extend(Row::beside_functions(shares));
        let columns = columns(snapshot, shares, detail);
        let header = columns.iter().map(|column| {
            format!("{} {}", column.name(), column.unit(&sheet)).trim_end().to_owned()
        });
        let header = header.collect();
        let with_cells = |row: Row<'a>| {
            let cells = columns.iter().map(|column| text(*column, &row, &sheet)).collect();
            (row, cells)
        };
        let rows = rows.into_iter().map(with_cells).collect();
        Grid { header, rows, columns, omitted, omitted_functions: others.len() }
    }
}

/// Returns the columns for which there is room.
fn columns(snapshot: &Snapshot, shares: &Shares, detail: Detail) -> Vec<Column> {
    let mut series = snapshot.all_series();
    if series.clone().next().is_none() {
        return vec![Column::Function, Column::Calls];
    }
    // Kernels have shares of their function's time.
    let has_shares = shares.are_known() || series.any(|series| series.opened() > 0);
    let fits = |column: &Column| match column {
        Column::Key | Column::P5 | Column::P95 => false,
        Column::Error => detail == Detail::All,
        Column::Share => has_shares,
        _ => true,
    };
    Column::of(snapshot).filter(fits).collect()
}

fn text(column: Column, row: &Row, sheet: &Sheet) -> String {
    let Some(Cell { text, chip, note, .. }) = column.cell(row, sheet) else { return String::new() };
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    match chip {
        // Figures stay below each other.
        Some(chip) if column.is_right() => format!("{chip} {text}{note}"),
        Some(chip) => format!("{text} {chip}{note}"),
        None => text + &note,
    }
}

/// Returns the rows of all functions, and the number of rows left out for lack of room. The
/// functions with the most time come first, and each of them may use at least half of the room that
/// the functions before it left.
fn rows<'a>(functions: &[Function<'_, 'a>], detail: Detail) -> (Vec<Row<'a>>, usize) {
    let of_all = |shown| functions.iter().map(move |function| function.rows(shown));
    let all: Vec<Row> = of_all(Shown::ALL).flatten().collect();
    if detail == Detail::All {
        return (all, 0);
    }
    let below = |rows: &[Row]| rows.iter().filter(|row| !row.is_function).count();
    let wanted: Vec<Vec<Row>> = of_all(Shown::MOST).collect();
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
