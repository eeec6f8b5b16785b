//! Table layout and colouring.

use comfy_table::{Table, presets};
use unicode_width::UnicodeWidthStr;

use super::column::TableColumn;
use super::grid::{Grid, Line};
use super::style::{DIMMED, DOUBTFUL, FUNCTION, TITLE, paint};
use crate::shorten::shortened;
use crate::{Terminal, marks};

/// The maximum width of a name if the terminal's width is unknown, and on the narrowest terminal.
const NAME: usize = 60;
const NARROW_NAME: usize = 24;

/// Lays out the table, with names as wide as the terminal allows.
pub fn fitted(mut grid: Grid, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&grid);
    let names = grid.rows.iter().filter_map(|line| grid.cell(line, TableColumn::Function));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default();
    let room = to
        .columns
        .map_or(NAME, |columns| (widest + columns).saturating_sub(width(&text)).max(NARROW_NAME));
    if widest > room {
        let short = shortened(names.iter().flat_map(|name| name.lines()), room);
        let cut = |name: &String| {
            let parts = name.lines().filter_map(|part| short.get(part).map(String::as_str));
            parts.collect::<Vec<_>>().join("\n")
        };
        grid.set(TableColumn::Function, names.iter().map(cut).collect());
        text = aligned(&grid);
    }
    if to.colours { coloured(&grid, &text) } else { text }
}

fn aligned(grid: &Grid) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(grid.header.clone())
        .add_rows(grid.rows.iter().map(|line| line.cells.clone()));
    for (laid_out, column) in table.column_iter_mut().zip(grid.columns()) {
        laid_out.set_padding((0, 2)).set_cell_alignment(column.alignment());
    }
    table.trim_fmt()
}

/// Adds colours to the text that [`aligned`] produced for the table.
fn coloured(grid: &Grid, text: &str) -> String {
    let mut shown = text.lines();
    let mut coloured: Vec<String> =
        shown.by_ref().take(1).map(|header| paint(TITLE, header)).collect();
    for line in &grid.rows {
        let height = line.cells.iter().map(|cell| cell.lines().count()).max().unwrap_or_default();
        for (i, text) in shown.by_ref().take(height).enumerate() {
            coloured.push(if i == 0 { first(grid, line, text) } else { paint(DIMMED, text) });
        }
    }
    coloured.join("\n")
}

/// Colours the first line of a row: a function's name, and a median that is an upper bound.
fn first(grid: &Grid, line: &Line, text: &str) -> String {
    let part = |column| grid.cell(line, column).and_then(|cell| cell.lines().next());
    let label = part(TableColumn::Function).unwrap_or_default();
    let (label, figures) = text.split_at_checked(label.len()).unwrap_or((text, ""));
    let label = if line.is_below_function { label.to_owned() } else { paint(FUNCTION, label) };
    let bound = part(TableColumn::Median).filter(|cell| cell.starts_with(marks::UPPER_BOUND));
    match bound {
        Some(cell) => label + &figures.replacen(cell, &paint(DOUBTFUL, cell), 1),
        None => label + figures,
    }
}
