//! The results table, with a verdict for each row.

use std::fmt;

use comfy_table::{CellAlignment, presets};

use crate::bound::Bound;
use crate::figure::Figure;

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    label: String,
    figure: Option<Figure>,
    truth: Option<Figure>,
    bound: String,
    verdict: Verdict,
    /// Additional remarks.
    note: String,
}

/// The verdict for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    Missed,
    LeftOut,
    /// The row has no bound.
    Unbounded,
}

impl Row {
    /// Creates a row with a figure beside the truth. If there is a bound, it applies to the
    /// difference between the medians.
    pub fn against(label: &str, figure: Figure, truth: Figure, bound: Option<Bound>) -> Row {
        let verdict = match bound {
            None => Verdict::Unbounded,
            Some(bound) if bound.holds(figure.median, truth.median) => Verdict::Ok,
            Some(_) => Verdict::Missed,
        };
        let bound = bound.map(|bound| bound.to_string()).unwrap_or_default();
        let (figure, truth) = (Some(figure), Some(truth));
        Row { label: label.to_owned(), figure, truth, bound, verdict, note: String::new() }
    }

    /// Creates a row with a figure whose median must be at most `ns` nanoseconds.
    pub fn at_most(label: &str, figure: Figure, ns: f64) -> Row {
        let verdict = if figure.median <= ns { Verdict::Ok } else { Verdict::Missed };
        let bound = format!("at most {} µs", ns / 1e3);
        let label = label.to_owned();
        Row { label, figure: Some(figure), truth: None, bound, verdict, note: String::new() }
    }

    /// Creates a row with a figure but no bound.
    pub fn shown(label: &str, figure: Figure) -> Row {
        let (label, bound, note) = (label.to_owned(), String::new(), String::new());
        Row { label, figure: Some(figure), truth: None, bound, verdict: Verdict::Unbounded, note }
    }

    /// Creates a row for a required figure that could not be measured.
    pub fn missed(label: &str, why: &str) -> Row {
        Row::without_figure(label, why, Verdict::Missed)
    }

    /// Creates a row for a figure that cannot be measured because this machine lacks something.
    pub fn left_out(label: &str, why: &str) -> Row {
        Row::without_figure(label, why, Verdict::LeftOut)
    }

    fn without_figure(label: &str, why: &str, verdict: Verdict) -> Row {
        let (label, note) = (label.to_owned(), why.to_owned());
        Row { label, figure: None, truth: None, bound: String::new(), verdict, note }
    }

    /// Sets the note.
    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    /// Marks the row as missed, regardless of the figure.
    pub fn fail(self, why: &str) -> Row {
        Row { verdict: Verdict::Missed, note: format!("{why}; {}", self.note), ..self }
    }

    /// Returns `true` if the bound is missed.
    pub fn is_missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }
}

/// All rows, in order.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the number of missed bounds.
    pub fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.is_missed()).count()
    }

    /// Returns the number of figures that cannot be measured on this machine.
    pub fn left_out(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::LeftOut).count()
    }
}

/// Formats as Markdown. Times are in microseconds: the median, with the 5th and 95th percentile.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["", "µs", "truth, µs", "off by, µs", "bound", "", ""]);
        for column in table.column_iter_mut().skip(1).take(3) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for row in &self.rows {
            let text = |figure: Option<Figure>| figure.map_or(String::new(), |f| f.to_string());
            let difference = row
                .figure
                .zip(row.truth)
                .map(|(figure, truth)| format!("{:+.3}", (figure.median - truth.median) / 1e3));
            let verdict = match row.verdict {
                Verdict::Ok => "ok",
                Verdict::Missed => "MISSED",
                Verdict::LeftOut => "left out",
                Verdict::Unbounded => "",
            };
            table.add_row([
                &*row.label,
                &text(row.figure),
                &text(row.truth),
                &difference.unwrap_or_default(),
                &row.bound,
                verdict,
                &row.note,
            ]);
        }
        writeln!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(median: f64) -> Figure {
        Figure { median, p5: median - 32.0, p95: median + 32.0 }
    }

    #[test]
    fn is_missed_needs_a_bound() {
        let row = |figure_ns, bound| Row::against("a", figure(figure_ns), figure(545.0), bound);
        assert!(!row(5_000.0, None).is_missed());
        assert!(!row(695.0, Some(Bound::ns(150.0))).is_missed());
        assert!(row(700.0, Some(Bound::ns(150.0))).is_missed());
        assert!(!Row::at_most("b", figure(96.0), 96.0).is_missed());
        assert!(Row::at_most("b", figure(128.0), 96.0).is_missed());
        assert!(Row::at_most("b", figure(f64::NAN), 96.0).is_missed());
        assert!(Row::missed("c", "no samples").is_missed());
        assert!(!Row::left_out("d", "no libcublas").is_missed());
        assert!(row(545.0, Some(Bound::ns(150.0))).fail("none was fed").is_missed());
    }

    #[test]
    fn table_shows_figures_and_verdicts() {
        let mut table = Table::default();
        let bound = Some(Bound::ns(150.0));
        table.push(Row::against("empty", figure(1_465.0), figure(545.0), bound).note("fed 200"));
        table.push(Row::left_out("product_64", "no libcublas"));
        let text = table.to_string();
        for cell in ["1.465 (1.433–1.497)", "+0.920", "0.15 µs", "MISSED", "fed 200", "left out"]
        {
            assert!(text.contains(cell), "no `{cell}` in\n{text}");
        }
        assert_eq!([table.missed(), table.left_out()], [1, 1]);
    }
}
