//! What turns lost against others, and what that says of a bound: pure.

use std::fmt;

/// What the budget may cost, and by how much two loops with timing off may differ, in percent.
pub const MOST: f64 = 1.2;
pub const CONTROL: f64 = 0.2;

/// By how much turns were slower than others, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub median: f64,
    /// Between these the median lies with 95 %, if rounds do not depend on each other.
    pub interval: [f64; 2],
    /// Four of five rounds lie between these.
    pub spread: [f64; 2],
}

/// Whether a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    Missed,
    /// It cannot be told.
    Invalid,
}

impl Loss {
    /// Of each turn against the other of its round.
    pub fn of(own: &[f64], others: &[f64]) -> Loss {
        let losses = own.iter().zip(others).map(|(own, other)| 100.0 * (own / other - 1.0));
        let losses = sorted(losses.collect());
        // The number of values below the median is binomial.
        let half = 0.98 / (losses.len() as f64).sqrt();
        Loss {
            median: quantile(&losses, 0.5),
            interval: [0.5 - half, 0.5 + half].map(|q| quantile(&losses, q)),
            spread: [0.1, 0.9].map(|q| quantile(&losses, q)),
        }
    }

    /// Whether it is none, as far as that matters, and known well enough.
    fn is_none(&self) -> bool {
        let [low, high] = self.interval;
        self.median.abs() <= CONTROL && high - low <= 2.0 * CONTROL
    }
}

/// What is to be said of the budget and of the control. No budget is judged by turns whose control differs,
/// or before it has settled.
pub fn judge(budget: &Loss, control: &Loss, is_settled: bool) -> [Verdict; 2] {
    if !control.is_none() {
        return [Verdict::Invalid; 2];
    }
    let verdict = match budget.median <= MOST {
        _ if !is_settled => Verdict::Invalid,
        true => Verdict::Ok,
        false => Verdict::Missed,
    };
    [verdict, Verdict::Ok]
}

pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values.to_vec()), 0.5)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values; not a number where there are none.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |[low, high]: [f64; 2]| format!("{low:+.2} to {high:+.2} %");
        write!(f, "{:+7.2}%  {:<18} {:<18}", self.median, span(self.interval), span(self.spread))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Ok => "ok",
            Verdict::Missed => "MISSED",
            Verdict::Invalid => "invalid",
        })
    }
}
