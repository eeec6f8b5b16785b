//! Table layout and colouring.

use comfy_table::{Table, presets};
use unicode_width::UnicodeWidthStr;

use super::column::{KERNEL_INDENT, TableColumn};
use super::grid::{Grid, Line};
use super::style::{DIMMED, DOUBTFUL, FUNCTION, TITLE, paint};
use crate::shorten::shortened;
use crate::{Terminal, kernel_names, marks};

/// The maximum width of a name if the terminal's width is unknown, and on the narrowest terminal.
const NAME: usize = 60;
const NARROW_NAME: usize = 24;

/// Lays out the table, with names as wide as the terminal allows.
pub fn fitted(mut grid: Grid, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&grid);
    let name = |line| grid.cell(line, TableColumn::Function).unwrap_or_default().to_owned();
    let names: Vec<String> = grid.rows.iter().map(name).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default();
    let room = to
        .columns
        .map_or(NAME, |columns| (widest + columns).saturating_sub(width(&text)).max(NARROW_NAME));
    if widest > room {
        let names = with_short_kernels(&grid, names, room);
        let short = shortened(names.iter().flat_map(|name| name.lines()), room);
        let cut = |name: &String| {
            let parts = name.lines().filter_map(|part| short.get(part).map(String::as_str));
            parts.collect::<Vec<_>>().join("\n")
        };
        grid.set(TableColumn::Function, names.iter().map(cut).collect());
        text = aligned(&grid);
    }
    with_wide_lines(&grid, &text, to)
}

/// Shortens the names of kernels so that their differences remain.
fn with_short_kernels(grid: &Grid, labels: Vec<String>, room: usize) -> Vec<String> {
    let name = |label: &str| {
        let (name, configuration) = label.split_once('\n').unwrap_or((label, ""));
        (name.trim_start().to_owned(), configuration.to_owned())
    };
    let kernels = grid.rows.iter().zip(&labels).filter(|(line, _)| line.is_kernel);
    let names: Vec<String> = kernels.map(|(_, label)| name(label).0).collect();
    let room = room.saturating_sub(KERNEL_INDENT.len());
    let short = kernel_names::shortened(names.iter().map(String::as_str), room);
    let shorten = |(line, label): (&Line, String)| {
        if !line.is_kernel {
            return label;
        }
        let (name, configuration) = name(&label);
        let name = short.get(&*name).unwrap_or(&name);
        format!("{KERNEL_INDENT}{name}\n{configuration}")
    };
    grid.rows.iter().zip(labels).map(shorten).collect()
}

fn aligned(grid: &Grid) -> String {
    let mut table = Table::new();
    let rows = grid.rows.iter().filter(|line| line.wide.is_none());
    table
        .load_style(presets::NOTHING)
        .set_header(grid.header.clone())
        .add_rows(rows.map(|line| line.cells.clone()));
    for (laid_out, column) in table.column_iter_mut().zip(grid.columns()) {
        laid_out.set_padding((0, 2)).set_cell_alignment(column.alignment());
    }
    table.trim_fmt()
}

/// Inserts the lines that are as wide as the table into the text that [`aligned`] produced for the
/// others, and adds colours.
fn with_wide_lines(grid: &Grid, text: &str, to: Terminal) -> String {
    let mut laid_out = text.lines();
    let mut lines: Vec<String> =
        laid_out.by_ref().take(1).map(|header| to.styled(TITLE, header)).collect();
    for line in &grid.rows {
        if let Some(wide) = &line.wide {
            lines.extend(wrapped(wide, to.columns).iter().map(|part| to.styled(DIMMED, part)));
            continue;
        }
        let height = line.cells.iter().map(|cell| cell.lines().count()).max().unwrap_or_default();
        for (i, text) in laid_out.by_ref().take(height).enumerate() {
            lines.push(match i {
                0 if to.colours => first(grid, line, text),
                0 => text.to_owned(),
                _ => to.styled(DIMMED, text),
            });
        }
    }
    lines.join("\n")
}

/// Breaks a line after commas so that its parts fit. Later parts are indented further.
fn wrapped(line: &str, columns: Option<usize>) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for item in line.split_inclusive(", ") {
        match parts.last_mut() {
            Some(last)
                if columns.is_none_or(|most| last.width() + item.trim_end().width() <= most) =>
            {
                last.push_str(item)
            }
            Some(_) => parts.push(format!("{KERNEL_INDENT}{item}")),
            None => parts.push(item.to_owned()),
        }
    }
    parts.iter().map(|part| part.trim_end().to_owned()).collect()
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
