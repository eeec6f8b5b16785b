//! Figures as renderings print them.

use std::collections::BTreeMap;

/// A printed figure.
#[derive(Clone, Debug)]
pub struct Figure {
    pub value: f64,
    /// The largest difference from the value that rounding explains.
    pub within: f64,
    /// The marks beside the figure. `None` if the rendering has no marks.
    pub marks: Option<String>,
}

/// What a rendering says of a series, or of a path of the call tree. What it leaves out is `None`.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub calls: Option<Figure>,
    pub samples: Option<Figure>,
    pub median: Option<Figure>,
    pub own: Option<Figure>,
    /// The standard error of a path's own time.
    pub own_error: Option<Figure>,
    pub total: Option<Figure>,
    /// The standard error of the total, as a part of it.
    pub error: Option<Figure>,
    pub share: Option<Figure>,
}

/// A path of the call tree.
#[derive(Debug)]
pub struct Path {
    pub name: String,
    /// The number of its callers.
    pub depth: usize,
    pub row: Row,
}

/// The indices of a function and of its series. A function may have a row without a series.
pub type Key = (usize, Option<usize>);

/// The rows of functions.
pub type Rows = BTreeMap<Key, Row>;

impl Figure {
    /// Creates a figure that is not rounded, from a rendering without marks.
    pub fn exact(value: f64) -> Figure {
        Figure { value, within: 0.0, marks: None }
    }

    /// Reads a figure in this unit, unless it names one of its own.
    ///
    /// # Panics
    ///
    /// Panics if the text is not a figure.
    pub fn read(text: &str, unit: &str) -> Option<Figure> {
        let is_mark = |c: &char| "≤≥~?*".contains(*c);
        let marks: String = text.chars().filter(is_mark).collect();
        let plain: String = text.chars().filter(|c| !is_mark(c) && *c != '\u{202f}').collect();
        let plain = plain.trim().trim_start_matches('±');
        if plain.is_empty() && marks.is_empty() {
            return None;
        }
        let (number, unit) = match plain.split_once(' ') {
            Some(parts) => parts,
            None => plain.strip_suffix('%').map_or((plain, unit), |number| (number, "%")),
        };
        let unit = match unit {
            "" | "ns" => 1.0,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "%" => 0.01,
            _ => panic!("{text:?} is in an unknown unit"),
        };
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let (value, within) = match number {
            // There is no time.
            "–" => (0.0, 0.0),
            // An error that is not known.
            "" => (f64::NAN, 0.0),
            _ => match number.parse::<f64>() {
                Ok(value) => (value * unit, 0.501 * unit * 0.1_f64.powi(decimals as i32)),
                Err(error) => panic!("{text:?} is no figure: {error}"),
            },
        };
        Some(Figure { value, within, marks: Some(marks) })
    }

    /// Returns `true` if both stand for the same value.
    pub fn agrees(&self, other: &Figure) -> bool {
        let most = self.within + other.within + 1e-9 * self.value.abs();
        let is_near = (self.value - other.value).abs() <= most;
        let are_unknown = self.value.is_nan() && other.value.is_nan();
        let have_same_marks =
            self.marks.as_ref().zip(other.marks.as_ref()).is_none_or(|(a, b)| a == b);
        (is_near || are_unknown) && have_same_marks
    }
}

impl Row {
    /// Returns the figures by name.
    pub fn figures(&self) -> [(&'static str, &Option<Figure>); 8] {
        let Row { calls, samples, median, own, own_error, total, error, share } = self;
        [
            ("calls", calls),
            ("samples", samples),
            ("median", median),
            ("self", own),
            ("error of self", own_error),
            ("total", total),
            ("error", error),
            ("share", share),
        ]
    }

    /// Sets the figure of a column, as `read` returns it. Other columns are ignored.
    pub fn set(&mut self, column: &str, read: impl FnOnce() -> Option<Figure>) {
        let figure = match column {
            "calls" => &mut self.calls,
            "samples" => &mut self.samples,
            "median" => &mut self.median,
            "self" => &mut self.own,
            "total" => &mut self.total,
            "±" => &mut self.error,
            "share" => &mut self.share,
            _ => return,
        };
        *figure = read();
    }

    pub fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        let Row { calls, samples, median, own, own_error, total, error, share } = self;
        [calls, samples, median, own, own_error, total, error, share].into_iter().flatten()
    }
}
