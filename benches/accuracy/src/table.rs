//! The table that is printed last, and the judgement in it.

use std::fmt;

use comfy_table::{CellAlignment, presets};

use crate::bound::Bound;
use crate::figure::Figure;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    what: String,
    figure: Option<Figure>,
    truth: Option<Figure>,
    bound: String,
    verdict: Verdict,
    /// What else a reader must know.
    note: String,
}

/// What comes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    Missed,
    LeftOut,
    /// Nothing is promised.
    Shown,
}

impl Row {
    /// A figure beside the truth, which its median must be near to if there is a bound.
    pub fn against(what: &str, figure: Figure, truth: Figure, bound: Option<Bound>) -> Row {
        let verdict = match bound {
            None => Verdict::Shown,
            Some(bound) if bound.holds(figure.median, truth.median) => Verdict::Ok,
            Some(_) => Verdict::Missed,
        };
        let bound = bound.map(|bound| bound.to_string()).unwrap_or_default();
        let (figure, truth) = (Some(figure), Some(truth));
        Row { what: what.to_owned(), figure, truth, bound, verdict, note: String::new() }
    }

    /// A figure whose median must be at most so many nanoseconds.
    pub fn at_most(what: &str, figure: Figure, ns: f64) -> Row {
        let verdict = if figure.median <= ns { Verdict::Ok } else { Verdict::Missed };
        let bound = format!("at most {} µs", ns / 1e3);
        let what = what.to_owned();
        Row { what, figure: Some(figure), truth: None, bound, verdict, note: String::new() }
    }

    /// A figure of which nothing is promised.
    pub fn shown(what: &str, figure: Figure) -> Row {
        let (what, bound, note) = (what.to_owned(), String::new(), String::new());
        Row { what, figure: Some(figure), truth: None, bound, verdict: Verdict::Shown, note }
    }

    /// A figure that there should be.
    pub fn missed(what: &str, why: &str) -> Row {
        Row::without(what, why, Verdict::Missed)
    }

    /// A figure that this machine has no means for.
    pub fn left_out(what: &str, why: &str) -> Row {
        Row::without(what, why, Verdict::LeftOut)
    }

    fn without(what: &str, why: &str, verdict: Verdict) -> Row {
        let (what, note) = (what.to_owned(), why.to_owned());
        Row { what, figure: None, truth: None, bound: String::new(), verdict, note }
    }

    /// The same with a remark.
    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    /// The same as a failure, whatever the figure.
    pub fn fail(self, why: &str) -> Row {
        Row { verdict: Verdict::Missed, note: format!("{why}; {}", self.note), ..self }
    }

    /// Whether a bound is missed.
    pub fn is_missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }
}

/// Rows under headings.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds one.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// How many bounds are missed.
    pub fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.is_missed()).count()
    }

    /// How many figures this machine had no means for.
    pub fn left_out(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == Verdict::LeftOut).count()
    }
}

/// Times are in microseconds: the median, and the 5th and 95th percentile.
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
            let off = row
                .figure
                .zip(row.truth)
                .map(|(figure, truth)| format!("{:+.3}", (figure.median - truth.median) / 1e3));
            let verdict = match row.verdict {
                Verdict::Ok => "ok",
                Verdict::Missed => "MISSED",
                Verdict::LeftOut => "left out",
                Verdict::Shown => "",
            };
            table.add_row([
                &*row.what,
                &text(row.figure),
                &text(row.truth),
                &off.unwrap_or_default(),
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
    fn only_a_bound_can_be_missed() {
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
    fn the_table_shows_what_was_judged() {
        let mut table = Table::default();
        let bound = Some(Bound::ns(150.0));
        table.push(Row::against("empty", figure(1_465.0), figure(545.0), bound).note("fed 200"));
        table.push(Row::left_out("product_64", "no libcublas"));
        let text = table.to_string();
        for shown in ["1.465 (1.433–1.497)", "+0.920", "0.15 µs", "MISSED", "fed 200", "left out"]
        {
            assert!(text.contains(shown), "no `{shown}` in\n{text}");
        }
        assert_eq!([table.missed(), table.left_out()], [1, 1]);
    }
}
