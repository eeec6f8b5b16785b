//! The table's cells as text, in order.

use std::iter;

use super::function;
use crate::analysis::Analysis;
use crate::column::{Cell, Column, Sheet};
use crate::figure::{Bound, Figure};
use crate::groups::{self, Group};
use crate::marks::Printed;
use crate::row::Row;
use crate::style::{DOUBTFUL, FUNCTION};
use crate::text_table::{TextRow, TextTable};
use crate::units::{self, printable};
use crate::{Detail, Series};

/// The number of digits shown for most times.
const DIGITS: u8 = 4;

/// The rows of the functions that were called: the one to look at first, then those with the most time of their own. With
/// all details, they follow each. Without any series, there are only names and numbers of calls.
pub struct Grid {
    pub table: TextTable,
    /// The number of rows with details that the table omits.
    pub omitted: usize,
    /// The number of functions that the table omits.
    pub omitted_functions: usize,
}

impl Grid {
    /// Creates the rows. `most` limits the number of functions.
    pub fn of(analysis: &Analysis, detail: Detail, most: Option<usize>, printed: &Printed) -> Grid {
        let Analysis { shares, lead, .. } = analysis;
        let groups = groups::of(analysis);
        let sheet = Sheet::of(analysis, printed, DIGITS);
        let mut functions: Vec<&[Group]> = groups.chunk_by(|a, b| a.at == b.at).collect();
        let first = lead.first.as_ref().map(|first| first.site);
        let is_first = |groups: &&[Group]| Some(groups[0].at) == first;
        if let Some(at) = functions.iter().position(is_first) {
            functions[..=at].rotate_right(1);
        }
        // A row "and 1 more function" would be no shorter than the function's own.
        let most = most.filter(|most| functions.len() > most + 1).unwrap_or(functions.len());
        let (functions, others) = functions.split_at(most);
        let all = functions.iter().flat_map(|groups| function::rows(analysis, groups));
        let is_shown = |row: &Row| row.is_function || detail == Detail::All;
        let (mut rows, omitted): (Vec<Row>, Vec<Row>) = all.partition(is_shown);
        if !others.is_empty() {
            let label = format!("and {} more functions", units::count(others.len() as u64));
            let share = function::share(shares, others.iter().copied().flatten());
            let own = share.map(|share| Figure::new(shares.ns(share), Bound::Exact));
            rows.push(Row { label, own, share, ..Row::default() });
        }
        rows.extend(Row::beside_functions(shares));
        let columns = columns(analysis, detail);
        let title = |column: &Column| {
            let title = format!("{} {}", column.name(), column.unit(&sheet));
            (title.trim_end().to_owned(), column.is_right())
        };
        let titles = columns.iter().map(title).collect();
        let rows = rows.into_iter().map(|row| text_row(row, &columns, &sheet, detail)).collect();
        let table = TextTable { titles, name_at: 0, rows };
        Grid { table, omitted: omitted.len(), omitted_functions: others.len() }
    }
}

fn text_row(row: Row, columns: &[Column], sheet: &Sheet, detail: Detail) -> TextRow {
    let mut styles = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        match column {
            Column::Function if row.is_function => styles.push((at, FUNCTION)),
            Column::Median if row.series.is_some_and(Series::is_bound) => {
                styles.push((at, DOUBTFUL))
            }
            _ => {}
        }
    }
    let name = text(Column::Function, &row, sheet);
    let of_others = columns.iter().skip(1).map(|column| text(*column, &row, sheet));
    let cells = iter::once(String::new()).chain(of_others).collect();
    let text_row = TextRow { name, cells, styles, ..TextRow::default() };
    match row.kernel {
        Some(kernel) => TextRow {
            before: "    ".to_owned(),
            name: printable(&kernel.name),
            after: row.configuration,
            is_kernel: true,
            ..text_row
        },
        None => TextRow { below: row.below.filter(|_| detail == Detail::All), ..text_row },
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
