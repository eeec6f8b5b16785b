//! Table layout and colouring.

use std::collections::HashMap;
use std::iter;

use unicode_width::UnicodeWidthStr;

use super::function::KERNEL_INDENT;
use super::grid::Grid;
use crate::column::Column;
use crate::columns;
use crate::row::Row;
use crate::shorten::shortened;
use crate::style::{DIMMED, DOUBTFUL, FUNCTION, TITLE, paint};
use crate::units::printable;
use crate::wrap::wrapped;
use crate::{Series, Terminal, kernel_names, terminal};

/// Lays out the table, each row on one line, with names as wide as the terminal allows.
pub fn fitted(mut grid: Grid, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&grid);
    let names: Vec<String> = grid.rows.iter().map(|(_, cells)| cells[0].clone()).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or_default();
    let room = terminal::room_for_names(to, width(&text).saturating_sub(widest));
    if widest > room {
        let names = with_short_kernels(&grid, names, room);
        let short = shortened(names.iter().map(String::as_str), room);
        for ((_, cells), name) in grid.rows.iter_mut().zip(&names) {
            cells[0].clone_from(short.get(&**name).unwrap_or(name));
        }
        text = aligned(&grid);
    }
    with_wide_lines(&grid, &text, to)
}

/// Shortens the names of kernels so that their differences, and the launch configurations that
/// follow some of them, remain visible.
fn with_short_kernels(grid: &Grid, labels: Vec<String>, room: usize) -> Vec<String> {
    let kernels = || {
        let rows = grid.rows.iter();
        rows.filter_map(|(row, _)| Some((printable(&row.kernel?.name), row.configuration.width())))
    };
    let behind = kernels().map(|(_, configuration)| configuration).max().unwrap_or_default();
    let short = [0, behind].map(|behind| {
        let of_kind = kernels().filter(|(_, configuration)| (*configuration > 0) == (behind > 0));
        let names: Vec<String> = of_kind.map(|(name, _)| name).collect();
        let room = room.saturating_sub(KERNEL_INDENT.len() + behind);
        let short = kernel_names::shortened(names.iter().map(String::as_str), room);
        short.into_iter().map(|(name, short)| (name.to_owned(), short)).collect::<HashMap<_, _>>()
    });
    let shorten = |((row, _), label): (&(Row, _), String)| {
        let Row { kernel: Some(kernel), configuration, .. } = row else { return label };
        let name = printable(&kernel.name);
        let short = short[usize::from(!configuration.is_empty())].get(&name).unwrap_or(&name);
        format!("{KERNEL_INDENT}{short}{configuration}")
    };
    grid.rows.iter().zip(labels).map(shorten).collect()
}

fn aligned(grid: &Grid) -> String {
    let rows = grid.rows.iter().filter(|(row, _)| row.sentence.is_none());
    let rows = rows.map(|(_, cells)| &**cells);
    let is_right = |at: usize| grid.columns[at].is_right();
    columns::aligned(iter::once(&*grid.header).chain(rows), is_right)
}

/// Inserts the lines that are as wide as the table into the text of the other rows, which
/// [`aligned`] produced, and adds colours.
fn with_wide_lines(grid: &Grid, text: &str, to: Terminal) -> String {
    let mut laid_out = text.lines();
    let mut lines: Vec<String> =
        laid_out.by_ref().take(1).map(|header| to.styled(TITLE, header)).collect();
    for (row, cells) in &grid.rows {
        if let Some(sentence) = &row.sentence {
            lines.extend(wrapped(sentence, to.columns).iter().map(|part| to.styled(DIMMED, part)));
            continue;
        }
        let Some(text) = laid_out.next() else { break };
        lines.push(if to.colours { coloured(grid, row, cells, text) } else { text.to_owned() });
    }
    lines.join("\n")
}

/// Colours a row: a function's name, and a median that is an upper bound.
fn coloured(grid: &Grid, row: &Row, cells: &[String], text: &str) -> String {
    let (label, figures) = text.split_at_checked(cells[0].len()).unwrap_or((text, ""));
    let label = if row.is_function { paint(FUNCTION, label) } else { label.to_owned() };
    let median = grid.columns.iter().position(|column| *column == Column::Median);
    match median.filter(|_| row.series.is_some_and(Series::is_bound)) {
        Some(at) => label + &figures.replacen(&cells[at], &paint(DOUBTFUL, &cells[at]), 1),
        None => label + figures,
    }
}
