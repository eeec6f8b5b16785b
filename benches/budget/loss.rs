//! Slowdown statistics and verdicts, without I/O.

use std::fmt;

/// The largest loss, in percent for each percent of budget.
pub const MAX_LOSS: f64 = 1.2;
/// The smallest loss for the budget to count as spent, in the same unit.
pub const MIN_LOSS: f64 = 0.6;
/// The largest difference between two loops with timing off, in the same unit.
pub const MAX_CONTROL: f64 = 0.2;

/// The slowdown of turns, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub median: f64,
    /// The 95 % confidence interval for the median, assuming independent rounds.
    pub interval: [f64; 2],
    /// The 10th and 90th percentile over the rounds.
    pub spread: [f64; 2],
}

/// The verdict on a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    Missed,
    /// Within the bound, but more calls could have been timed.
    Underspent,
    /// The measurement cannot show whether the bound holds.
    Invalid,
}

impl Loss {
    /// Computes the loss of each turn relative to the other turn in its round.
    pub fn of(own: &[f64], others: &[f64]) -> Loss {
        let losses = own.iter().zip(others).map(|(own, other)| 100.0 * (own / other - 1.0));
        let losses = sorted(losses.collect());
        // The number of values below the median is binomially distributed.
        let half = 0.98 / (losses.len() as f64).sqrt();
        Loss {
            median: quantile(&losses, 0.5),
            interval: [0.5 - half, 0.5 + half].map(|q| quantile(&losses, q)),
            spread: [0.1, 0.9].map(|q| quantile(&losses, q)),
        }
    }

    /// Returns `true` if the loss is negligible compared with a budget of `percent`, and known with
    /// sufficient precision.
    fn is_negligible(&self, percent: f64) -> bool {
        let [low, high] = self.interval;
        let bound = MAX_CONTROL * percent;
        self.median.abs() <= bound && high - low <= 2.0 * bound
    }
}

/// Returns the verdicts for the budget and for the control. If the control differs, both are
/// invalid. If the budget has not settled, its verdict is invalid.
pub fn judge(budget: &Loss, control: &Loss, percent: f64, is_settled: bool) -> [Verdict; 2] {
    if !control.is_negligible(percent) {
        return [Verdict::Invalid; 2];
    }
    let verdict = if !is_settled {
        Verdict::Invalid
    } else if budget.median > MAX_LOSS * percent {
        Verdict::Missed
    } else if budget.median < MIN_LOSS * percent {
        Verdict::Underspent
    } else {
        Verdict::Ok
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

/// Returns a quantile of sorted values, or NaN without values.
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
            Verdict::Underspent => "underspent",
            Verdict::Invalid => "invalid",
        })
    }
}
