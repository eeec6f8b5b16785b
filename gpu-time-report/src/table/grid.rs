//! The table's cells as text, in order.

use super::function::Function;
use crate::analysis::Analysis;
use crate::column::{Cell, Column, Sheet};
use crate::figure::{Bound, Figure};
use crate::largest::sort_by_largest;
use crate::marks::Printed;
use crate::row::Row;
use crate::{Detail, groups, units};

/// The number of digits shown for most times.
const DIGITS: u8 = 4;

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
    /// Creates rows for the functions that were called: the one to look at first, then those with the most time of their own.
    /// With all details, they follow each. `most` limits the number of functions. Without any series, there are only names and
    /// numbers of calls.
    pub fn of(
        analysis: &Analysis<'a>,
        detail: Detail,
        most: Option<usize>,
        printed: &Printed,
    ) -> Grid<'a> {
        let Analysis { snapshot, shares, lead, .. } = analysis;
        let groups = groups::of(snapshot);
        let sheet = Sheet::of(analysis, printed, DIGITS);
        let by_function = groups.chunk_by(|a, b| a.at == b.at);
        let mut functions: Vec<Function> =
            by_function.map(|groups| Function::of(analysis, groups)).collect();
        let first = lead.first.as_ref().map(|first| first.site);
        sort_by_largest(&mut functions, Function::longest);
        sort_by_largest(&mut functions, |function| function.own_ns);
        if let Some(at) = functions.iter().position(|function| function.site() == first) {
            functions[..=at].rotate_right(1);
        }
        // A row "and 1 more function" would be no shorter than the function's own.
        let most = most.filter(|most| functions.len() > most + 1).unwrap_or(functions.len());
        let (functions, others) = functions.split_at(most);
        let of_all = |details| functions.iter().flat_map(move |function| function.rows(details));
        let all: Vec<Row> = of_all(true).collect();
        let count = all.len();
        let mut rows: Vec<Row> = if detail == Detail::All { all } else { of_all(false).collect() };
        let omitted = count - rows.len();
        if !others.is_empty() {
            let label = format!("and {} more functions", units::count(others.len() as u64));
            let known = others.iter().filter_map(|function| function.share(function.groups));
            let share = known.reduce(|sum, share| sum + share);
            let own = share.map(|share| Figure::new(shares.ns(share), Bound::Exact));
            rows.push(Row { label, own, share, ..Row::default() });
        }
        rows.extend(Row::beside_functions(shares));
        let columns = columns(analysis, detail);
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
fn columns(analysis: &Analysis, detail: Detail) -> Vec<Column> {
    let Analysis { snapshot, shares, .. } = analysis;
    let mut series = snapshot.all_series();
    if series.clone().next().is_none() {
        return vec![Column::Function, Column::Calls];
    }
    // The details have kernels, with shares of their function's time.
    let has_kernels = detail == Detail::All && series.any(|series| series.opened() > 0);
    let has_shares = shares.are_known() || has_kernels;
    let fits = |column: &Column| match column {
        Column::Key | Column::P5 | Column::P95 => false,
        Column::Error => detail == Detail::All,
        Column::Share => has_shares,
        _ => true,
    };
    Column::of(analysis).filter(fits).collect()
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
