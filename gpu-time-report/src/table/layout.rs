//! How the lines of the table are laid out and coloured.

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};
use unicode_width::UnicodeWidthStr;

use super::lines::{Kind, Line};
use super::{DOUBTFUL, LESS, TITLE};
use crate::shorten::shortened;
use crate::{Terminal, notes};

/// How wide a name may be where no terminal has a width, and how wide on the narrowest one.
const NAME: usize = 60;
const NARROW_NAME: usize = 24;

const NAME_OF_FUNCTION: Style = AnsiColor::Cyan.on_default().bold();

/// The table, with names that are as wide as they may be.
pub fn fitted(mut lines: Vec<Line>, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&lines);
    let names: Vec<String> = lines.iter().filter_map(|line| line.cells.first().cloned()).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default();
    let room = to
        .columns
        .map_or(NAME, |columns| (widest + columns).saturating_sub(width(&text)).max(NARROW_NAME));
    if widest > room {
        let short = shortened(names.iter().flat_map(|name| name.lines()), room);
        for (line, name) in lines.iter_mut().zip(&names) {
            let parts: Vec<&str> =
                name.lines().filter_map(|part| short.get(part).map(String::as_str)).collect();
            if let Some(cell) = line.cells.first_mut() {
                *cell = parts.join("\n");
            }
        }
        text = aligned(&lines);
    }
    if to.colours { coloured(&lines, &text) } else { text }
}

fn aligned(lines: &[Line]) -> String {
    let (header, rows) =
        lines.split_first().map_or((None, lines), |(first, rest)| (Some(first), rest));
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.map(|line| line.cells.clone()).unwrap_or_default())
        .add_rows(rows.iter().map(|line| line.cells.clone()));
    let texts = if table.column_count() > 2 { 3 } else { 1 };
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The lines of the table, which they were laid out as, in colours.
fn coloured(lines: &[Line], text: &str) -> String {
    let paint = |style: Style, text: &str| format!("{style}{text}{style:#}");
    let mut shown = text.lines();
    let mut coloured = Vec::new();
    for Line { kind, cells } in lines {
        let height = cells.iter().map(|cell| cell.lines().count()).max().unwrap_or_default();
        let label = cells.first().and_then(|cell| cell.lines().next()).unwrap_or_default();
        for (i, line) in shown.by_ref().take(height).enumerate() {
            coloured.push(match (kind, i) {
                (Kind::Header, _) => paint(TITLE, line),
                (_, 1..) => paint(LESS, line),
                (kind, 0) => {
                    let (label, figures) = line.split_at_checked(label.len()).unwrap_or((line, ""));
                    let is_function = *kind == Kind::Function;
                    let label =
                        if is_function { paint(NAME_OF_FUNCTION, label) } else { label.to_owned() };
                    // The mark stands before the median alone.
                    let bound = cells.get(5).and_then(|cell| cell.lines().next());
                    let bound = bound.filter(|cell| cell.starts_with(notes::UPPER_BOUND));
                    label
                        + &match bound {
                            Some(cell) => figures.replacen(cell, &paint(DOUBTFUL, cell), 1),
                            None => figures.to_owned(),
                        }
                }
            });
        }
    }
    coloured.join("\n")
}
