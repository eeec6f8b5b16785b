//! Tables of text: cells aligned in columns, of which one has names that are shortened to fit the terminal.

use std::{iter, mem};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::shorten::shortened;
use crate::style::{DIMMED, TITLE, paint};
use crate::wrap::wrapped;
use crate::{Terminal, kernel_names, terminal};

/// The space between two columns.
const GAP: usize = 2;
/// The minimum width of a name between what precedes and follows it.
const MIN_NAME: usize = 12;

/// A table with a header.
pub(crate) struct TextTable {
    /// The titles of the columns, and whether each is aligned at the right.
    pub titles: Vec<(String, bool)>,
    /// The index of the column with names.
    pub name_at: usize,
    pub rows: Vec<TextRow>,
}

/// A row of a table.
#[derive(Default)]
pub(crate) struct TextRow {
    /// Precedes the name.
    pub before: String,
    pub name: String,
    /// Follows the name.
    pub after: String,
    /// The name is that of a kernel, of which some parts tell more than others.
    pub is_kernel: bool,
    /// The cells of all columns, in which the one with the name is empty.
    pub cells: Vec<String>,
    /// The styles of cells, by column.
    pub styles: Vec<(usize, Style)>,
    /// A sentence as wide as the table, below the row.
    pub below: Option<String>,
}

impl TextTable {
    /// Lays out the table, each row on one line, with names as wide as the terminal allows.
    pub fn text(mut self, to: Terminal) -> String {
        let title = mem::replace(&mut self.titles[self.name_at].0, "-".to_owned());
        let with_narrow_names = self.aligned();
        self.titles[self.name_at].0 = title;
        let width = with_narrow_names.lines().map(UnicodeWidthStr::width).max();
        self.shorten(terminal::room_for_names(to, width.unwrap_or_default().saturating_sub(1)));
        let text = self.aligned();
        let mut text = text.lines();
        let mut lines: Vec<String> =
            text.by_ref().take(1).map(|titles| to.styled(TITLE, titles)).collect();
        for (row, line) in self.rows.iter().zip(text) {
            lines.push(if to.colours { row.coloured(line) } else { line.to_owned() });
            let below = row.below.iter().flat_map(|sentence| wrapped(sentence, to.columns));
            lines.extend(below.map(|line| to.styled(DIMMED, &line)));
        }
        lines.join("\n")
    }

    fn aligned(&self) -> String {
        let titles: Vec<String> = self.titles.iter().map(|(title, _)| title.clone()).collect();
        let rows = self.rows.iter().map(|row| &*row.cells);
        aligned(iter::once(&*titles).chain(rows), |at| self.titles[at].1)
    }

    /// Shortens the names, and puts them into their cells. Each fits between what precedes and follows it. Names that have the same room stay
    /// different, and those of kernels keep what tells templates apart.
    fn shorten(&mut self, room: usize) {
        let room_of = |row: &TextRow| {
            let least = if row.is_kernel { 0 } else { MIN_NAME };
            room.saturating_sub(row.before.width() + row.after.width()).max(least)
        };
        let rooms: Vec<_> = self.rows.iter().map(|row| (row.is_kernel, room_of(row))).collect();
        for (at, &(is_kernel, room)) in rooms.iter().enumerate() {
            if !rooms[..at].contains(&(is_kernel, room)) {
                let shorten = if is_kernel { kernel_names::shortened } else { shortened };
                let same = (at..rooms.len()).filter(|&at| rooms[at] == (is_kernel, room));
                self.replace_names(same.collect(), |names| shorten(names, room));
            }
        }
        for row in &mut self.rows {
            row.name = [&*row.before, &row.name, &row.after].concat();
        }
        // What follows the name of a kernel may take all of the room.
        let kernels = (0..rooms.len()).filter(|&at| rooms[at].0).collect();
        self.replace_names(kernels, |labels| shortened(labels, room));
        for row in &mut self.rows {
            row.cells[self.name_at].clone_from(&row.name);
        }
    }

    fn replace_names(&mut self, rows: Vec<usize>, short: impl Fn(&[&str]) -> Vec<String>) {
        let names: Vec<&str> = rows.iter().map(|&at| &*self.rows[at].name).collect();
        let short = short(&names);
        rows.into_iter().zip(short).for_each(|(at, name)| self.rows[at].name = name);
    }
}

impl TextRow {
    /// Adds the styles of the cells to the row's line.
    fn coloured(&self, line: &str) -> String {
        let (mut text, mut rest) = (String::new(), line);
        for (at, cell) in self.cells.iter().enumerate() {
            let Some((before, after)) = rest.split_once(&**cell).filter(|_| !cell.is_empty())
            else {
                continue;
            };
            let style = self.styles.iter().find(|(of, _)| *of == at);
            let cell = style.map_or(cell.clone(), |(_, style)| paint(*style, cell));
            text.extend([before, &cell]);
            rest = after;
        }
        text + rest
    }
}

/// Returns a line for each row, in columns as wide as their widest cells. Those for which `is_right` returns
/// `true` are aligned at the right.
pub fn aligned<'a>(
    rows: impl Iterator<Item = &'a [String]> + Clone,
    is_right: impl Fn(usize) -> bool,
) -> String {
    let mut widths = Vec::new();
    for row in rows.clone() {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width);
        }
    }
    let line = |row: &[String]| {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.width());
            let (before, after) = if is_right(at) { (&*space, "") } else { ("", &*space) };
            line.extend([before, cell, after, &" ".repeat(GAP)]);
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_by_their_width() {
        let rows = [["name", "n", ""], ["µs", "100", "…"], ["中", "1", ""]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let text = aligned(rows.iter().map(<[String; 3]>::as_slice), |at| at == 1);
        assert_eq!(text, "name    n\nµs    100  …\n中      1");
    }
}
