//! Rows of figures with their bounds.

use std::fmt;

/// Repetitions of one measurement: a median with its spread.
#[derive(Clone, Copy)]
pub struct Figure {
    pub median: f64,
    pub p5: f64,
    pub p95: f64,
}

impl Figure {
    /// Of at least one repetition.
    pub fn of(mut values: Vec<f64>) -> Figure {
        values.sort_by(f64::total_cmp);
        let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
        Figure { median: at(0.5), p5: at(0.05), p95: at(0.95) }
    }
}

/// What a figure must not exceed, or fall below.
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    None,
}

struct Row {
    what: &'static str,
    figure: Figure,
    unit: &'static str,
    bound: Bound,
}

/// The table that is printed last.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn row(&mut self, what: &'static str, figure: Figure, unit: &'static str, bound: Bound) {
        self.rows.push(Row { what, figure, unit, bound });
    }

    /// A single value, with no spread.
    pub fn value(&mut self, what: &'static str, value: f64, unit: &'static str, bound: Bound) {
        self.row(what, Figure { median: value, p5: value, p95: value }, unit, bound);
    }

    pub fn has_missed(&self) -> bool {
        self.rows.iter().any(Row::is_missed)
    }
}

impl Row {
    fn is_missed(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.figure.median > most,
            Bound::AtLeast(least) => self.figure.median < least,
            Bound::None => false,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<58} {:>10} {:>10} {:>10}  {:<9} bound", "", "median", "p5", "p95", "unit")?;
        for row in &self.rows {
            let Figure { median, p5, p95 } = row.figure;
            let bound = match row.bound {
                Bound::AtMost(most) => format!("at most {most}"),
                Bound::AtLeast(least) => format!("at least {least}"),
                Bound::None => String::new(),
            };
            let verdict = match row.bound {
                Bound::None => "",
                _ if row.is_missed() => " MISSED",
                _ => " ok",
            };
            writeln!(
                f,
                "{:<58} {median:>10.2} {p5:>10.2} {p95:>10.2}  {:<9} {bound}{verdict}",
                row.what, row.unit
            )?;
        }
        Ok(())
    }
}
