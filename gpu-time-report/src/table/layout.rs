//! Table layout and colouring.

use std::iter;

use unicode_width::UnicodeWidthStr;

use super::column::{KERNEL_INDENT, TableColumn};
use super::grid::{Grid, Line};
use crate::columns;
use crate::shorten::shortened;
use crate::style::{DIMMED, DOUBTFUL, FUNCTION, TITLE, paint};
use crate::wrap::wrapped;
use crate::{Terminal, kernel_names, marks, terminal};

/// Lays out the table, each row on one line, with names as wide as the terminal allows.
pub fn fitted(mut grid: Grid, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&grid);
    let name = |line| grid.cell(line, TableColumn::Function).unwrap_or_default().to_owned();
    let names: Vec<String> = grid.rows.iter().map(name).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or_default();
    let room = terminal::room_for_names(to, width(&text).saturating_sub(widest));
    if widest > room {
        let names = with_short_kernels(&grid, names, room);
        let short = shortened(names.iter().map(String::as_str), room);
        let names = names.iter().map(|name| short.get(&**name).unwrap_or(name).clone()).collect();
        grid.set(TableColumn::Function, names);
        text = aligned(&grid);
    }
    with_wide_lines(&grid, &text, to)
}

/// Shortens the names of kernels so that their differences, and the launch configurations that
/// follow some of them, remain visible.
fn with_short_kernels(grid: &Grid, labels: Vec<String>, room: usize) -> Vec<String> {
    let kernels = || grid.rows.iter().filter_map(|line| line.kernel.as_ref());
    let width = |configuration: &String| configuration.width();
    let behind = kernels().map(|(_, configuration)| width(configuration)).max().unwrap_or_default();
    let [alone, configured] = [0, behind].map(|behind| {
        let of_kind =
            kernels().filter(|(_, configuration)| (width(configuration) > 0) == (behind > 0));
        let room = room.saturating_sub(KERNEL_INDENT.len() + behind);
        kernel_names::shortened(of_kind.map(|(name, _)| &**name), room)
    });
    let shorten = |(line, label): (&Line, String)| match &line.kernel {
        Some((name, configuration)) => {
            let short = if configuration.is_empty() { &alone } else { &configured };
            format!("{KERNEL_INDENT}{}{configuration}", short.get(&**name).unwrap_or(name))
        }
        None => label,
    };
    grid.rows.iter().zip(labels).map(shorten).collect()
}

fn aligned(grid: &Grid) -> String {
    let rows = grid.rows.iter().filter(|line| line.wide.is_none()).map(|line| &*line.cells);
    let is_right = |at: usize| grid.columns().get(at).is_some_and(|column| column.is_right());
    columns::aligned(iter::once(&*grid.header).chain(rows), is_right)
}

/// Inserts the lines that are as wide as the table into the text of the other rows, which
/// [`aligned`] produced, and adds colours.
fn with_wide_lines(grid: &Grid, text: &str, to: Terminal) -> String {
    let mut laid_out = text.lines();
    let mut lines: Vec<String> =
        laid_out.by_ref().take(1).map(|header| to.styled(TITLE, header)).collect();
    for line in &grid.rows {
        if let Some(wide) = &line.wide {
            lines.extend(wrapped(wide, to.columns).iter().map(|part| to.styled(DIMMED, part)));
            continue;
        }
        let Some(text) = laid_out.next() else { break };
        lines.push(if to.colours { coloured(grid, line, text) } else { text.to_owned() });
    }
    lines.join("\n")
}

/// Colours a row: a function's name, and a median that is an upper bound.
fn coloured(grid: &Grid, line: &Line, text: &str) -> String {
    let part = |column| grid.cell(line, column);
    let label = part(TableColumn::Function).unwrap_or_default();
    let (label, figures) = text.split_at_checked(label.len()).unwrap_or((text, ""));
    let label = if line.is_function { paint(FUNCTION, label) } else { label.to_owned() };
    let bound = part(TableColumn::Median).filter(|cell| cell.contains(marks::UPPER_BOUND));
    match bound {
        Some(cell) => label + &figures.replacen(cell, &paint(DOUBTFUL, cell), 1),
        None => label + figures,
    }
}
