//! Cells of text, aligned in columns.

use unicode_width::UnicodeWidthStr;

/// The space between two columns.
const GAP: usize = 2;

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
