//! A table of figures and their bounds.

use std::fmt;

/// The median and spread of repeated measurements.
#[derive(Clone, Copy)]
pub struct Figure {
    pub median: f64,
    pub p5: f64,
    pub p95: f64,
}

impl Figure {
    /// Computes the figure of `values`, which must not be empty.
    pub fn of(mut values: Vec<f64>) -> Figure {
        values.sort_by(f64::total_cmp);
        let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
        Figure { median: at(0.5), p5: at(0.05), p95: at(0.95) }
    }
}

/// A bound on a figure's median.
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    None,
}

struct Row {
    label: &'static str,
    figure: Figure,
    unit: &'static str,
    bound: Bound,
}

/// The table printed at the end of the bench.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn row(&mut self, label: &'static str, figure: Figure, unit: &'static str, bound: Bound) {
        self.rows.push(Row { label, figure, unit, bound });
    }

    /// Adds a row with a single value, without spread.
    pub fn value(&mut self, label: &'static str, value: f64, unit: &'static str, bound: Bound) {
        self.row(label, Figure { median: value, p5: value, p95: value }, unit, bound);
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
            // The bounds of ratios have more digits.
            let digits = if row.unit == "ratio" { 3 } else { 2 };
            writeln!(
                f,
                "{:<58} {median:>10.digits$} {p5:>10.digits$} {p95:>10.digits$}  {:<9} {bound}{verdict}",
                row.label, row.unit
            )?;
        }
        Ok(())
    }
}
