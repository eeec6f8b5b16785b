//! The judge of changes: says whether a time changed between two programs or closures.

mod block;

use std::fmt;

use serde::Serialize;

use crate::kinds::named;
use crate::{ALPHA, LogRatio, PairedRatios, units};
pub use block::{Block, RunMedian};

/// The reason for an unknown verdict if the measurements do not tell more.
pub const TOO_WIDE: &str = "interval too wide";

named! {
    /// A verdict on a change, in the order in which rows are shown.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Verdict {
        Slower = "slower",
        Faster = "faster",
        #[default]
        Unknown = "unknown",
        Same = "same",
    }
}

/// The change of a series' median between two sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// The median in the base: with several runs, the geometric mean of the runs' medians; 0 if
    /// either series has no samples.
    pub base_median_ns: f64,
    /// The same in the new report.
    pub new_median_ns: f64,
    /// The numbers of runs, or of blocks if the sides took turns.
    pub runs: [usize; 2],
    /// The change as a share of the base median; `None` if a median is unknown.
    #[serde(rename = "change")]
    pub share: Option<f64>,
    /// The 95 % confidence interval of the share.
    #[serde(rename = "interval95")]
    pub interval: Option<[f64; 2]>,
    /// The p-value of the hypothesis that nothing changed.
    pub p_value: Option<f64>,
    pub verdict: Verdict,
    /// The reason for an unknown verdict; empty for the others.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub why: &'static str,
    /// The largest change that the interval contains, if the change is unknown only because a side
    /// has a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl Change {
    /// Returns the change between two sides that took turns, as [`judged`](Self::judged).
    pub fn of_pairs(ratios: &PairedRatios, gap: f64, threshold: f64) -> Change {
        let runs = [ratios.count() as usize; 2];
        if ratios.count() == 0 {
            return Change { runs, why: "no samples", ..Change::default() };
        }
        let [base_median_ns, new_median_ns] = ratios.times();
        let unknown = Change { base_median_ns, new_median_ns, runs, ..Change::default() };
        unknown.judged(ratios, gap, threshold)
    }

    /// Judges a change. Something other than the programs may account for a share of up to `gap`,
    /// and changes up to `threshold` are to be ignored.
    pub fn judged(self, ratio: &impl LogRatio, gap: f64, threshold: f64) -> Change {
        let share = ratio.estimate().exp_m1();
        let p_value = if share > gap {
            ratio.p_value(gap.ln_1p())
        } else if share < -gap {
            ratio.p_value((1.0 - gap).max(0.0).ln())
        } else {
            1.0
        };
        let known = Change { share: Some(share), p_value: Some(p_value), ..self };
        let Some(interval) = ratio.interval() else {
            return Change { why: "too few blocks", ..known };
        };
        let [low, high] = interval.map(f64::exp_m1);
        let widened = [(low - gap).max(-1.0), high + gap];
        if !widened.iter().all(|bound| bound.is_finite()) {
            return Change { why: TOO_WIDE, ..known };
        }
        let known = Change { interval: Some(widened), ..known };
        match verdict(share, widened, gap, threshold) {
            Some(verdict) => Change { verdict, ..known },
            None if verdict(share, [low, high], 0.0, threshold).is_some() => {
                Change { why: "the biases differ", ..known }
            }
            None => Change { why: TOO_WIDE, ..known },
        }
    }
}

/// Returns the verdict on a change by `share`, of which `gap` may not be the programs'. `None` if the
/// change is not known well enough.
fn verdict(share: f64, [low, high]: [f64; 2], gap: f64, threshold: f64) -> Option<Verdict> {
    match share {
        _ if share - gap > threshold && low > 0.0 => Some(Verdict::Slower),
        _ if share + gap < -threshold && high < 0.0 => Some(Verdict::Faster),
        _ if share.abs() <= threshold && high - share <= threshold && share - low <= threshold => {
            Some(Verdict::Same)
        }
        _ => None,
    }
}

/// Changes verdicts to unknown that may be chance, because many series are compared at once.
///
/// The probability of any false verdict is then at most [`ALPHA`] (Holm 1979).
pub fn correct<'a>(changes: impl Iterator<Item = &'a mut Change>) {
    let mut tested: Vec<(f64, &mut Change)> =
        changes.filter_map(|change| Some((change.p_value?, change))).collect();
    tested.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let count = tested.len();
    let is_sound = |at: usize, p_value: f64| p_value <= ALPHA / (count - at) as f64;
    let sound = tested.iter().enumerate().take_while(|(at, (p, _))| is_sound(*at, *p)).count();
    for (_, change) in tested.into_iter().skip(sound) {
        if matches!(change.verdict, Verdict::Slower | Verdict::Faster) {
            change.verdict = Verdict::Unknown;
            change.why = "may be chance among so many series";
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.verdict.name();
        match (self.at_most, self.why) {
            (Some(share), _) => {
                write!(f, "{name}: no change larger than {}", units::percent(share))
            }
            (None, "") => f.write_str(name),
            (None, why) => write!(f, "{name}: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verdicts on changes with these p-values that would be faster.
    fn corrected(p_values: &[f64]) -> Vec<bool> {
        let faster = |p_value: &f64| Change {
            p_value: Some(*p_value),
            verdict: Verdict::Faster,
            ..Change::default()
        };
        let mut changes: Vec<Change> = p_values.iter().map(faster).collect();
        correct(changes.iter_mut());
        changes.iter().map(|change| change.verdict == Verdict::Faster).collect()
    }

    #[test]
    fn holm_rejects_stepwise() {
        assert_eq!(corrected(&[0.04, 0.01, 0.02]), [true; 3]);
        assert_eq!(corrected(&[0.04, 0.01, 0.03]), [false, true, false]);
        assert_eq!(corrected(&[0.02, 0.02, 0.02]), [false; 3]);
        assert_eq!(corrected(&[1.0, 0.0]), [false, true]);
        assert_eq!(corrected(&[]), [false; 0]);
    }

    #[test]
    fn verdict_agrees_with_interval_and_p_value() {
        for shift in [-0.3, -0.08, -0.03, 0.0, 0.02, 0.06, 0.08, 0.3] {
            let mut ratios = PairedRatios::default();
            for noise in [0.0, 0.02, 0.01, 0.03, 0.015] {
                ratios.record([9.0, 9.0 + noise + shift], 0.0);
            }
            for gap in [0.0, 0.01, 0.05] {
                let change = Change::of_pairs(&ratios, gap, 0.0);
                let [low, high] = change.interval.unwrap();
                let is_outside = low > 0.0 || high < 0.0;
                assert_eq!(change.p_value.unwrap() < ALPHA, is_outside, "{change:?}, {gap}");
                assert_eq!(change.verdict != Verdict::Unknown, is_outside, "{change:?}, {gap}");
            }
        }
    }
}
