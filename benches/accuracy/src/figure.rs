//! Medians and their spread.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The median and the spread of repeated measurements, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The 50th percentile.
    pub median: f64,
    /// The 5th percentile.
    pub p5: f64,
    /// The 95th percentile.
    pub p95: f64,
}

impl Figure {
    /// Computes the figure of `times`. Returns `None` if there are none.
    pub fn of(mut times: Vec<f64>) -> Option<Figure> {
        times.sort_by(f64::total_cmp);
        let last = times.len().checked_sub(1)?;
        let at = |q: f64| times[(last as f64 * q).round() as usize];
        Some(Figure { median: at(0.5), p5: at(0.05), p95: at(0.95) })
    }

    /// Combines rounds by taking the median of each percentile. Returns `None` if there are no
    /// rounds.
    pub fn over(rounds: &[Figure]) -> Option<Figure> {
        let middle = |part: fn(&Figure) -> f64| {
            Figure::of(rounds.iter().map(part).collect()).map(|figure| figure.median)
        };
        Some(Figure {
            median: middle(|round| round.median)?,
            p5: middle(|round| round.p5)?,
            p95: middle(|round| round.p95)?,
        })
    }

    /// Returns the distance from the 5th to the 95th percentile.
    pub fn spread(&self) -> f64 {
        self.p95 - self.p5
    }
}

/// Formats in microseconds.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, p5, p95] = [self.median, self.p5, self.p95].map(|ns| ns / 1e3);
        write!(f, "{median:.3} ({p5:.3}–{p95:.3})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_picks_ranks() {
        let figure = Figure::of((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!(figure, Figure { median: 50.0, p5: 5.0, p95: 95.0 });
        assert_eq!(figure.spread(), 90.0);
        assert_eq!(Figure::of(Vec::new()), None);
    }

    #[test]
    fn over_ignores_one_outlier_of_three() {
        let round = |ns: f64| Figure { median: ns, p5: ns - 1.0, p95: ns + 1.0 };
        let rounds = [round(10.0), round(99.0), round(11.0)];
        assert_eq!(Figure::over(&rounds), Some(round(11.0)));
        assert_eq!(Figure::over(&[]), None);
    }
}
