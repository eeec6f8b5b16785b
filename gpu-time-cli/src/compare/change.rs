//! The change of a series' median, its confidence interval, and the verdict.

use std::fmt;

use gpu_time_report::{Series, step_ns};

use super::thresholds::Share;

/// The change of a series' median between two reports.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// The medians in the base and in the new report; 0 for a series without samples.
    pub medians_ns: [f64; 2],
    /// The change as a share of the base median; `None` if a median is unknown.
    pub share: Option<f64>,
    /// The 95 % confidence interval of the share.
    pub interval: Option<[f64; 2]>,
    pub verdict: Verdict,
    /// The reason for an unknown verdict.
    why: &'static str,
}

/// A verdict on a change, in the order in which rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Slower,
    Faster,
    Unknown,
    Same,
}

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy)]
struct Median {
    ns: f64,
    interval: Option<[f64; 2]>,
}

impl Change {
    /// Compares two series, timed by a clock that advances in steps of `clock_step_ns`. Changes of
    /// at most `threshold` are ignored.
    ///
    /// Compares net times if both biases come from the same source (`same_bias_source`), else raw
    /// times. If the biases differ, the interval is widened by their difference.
    pub fn of(
        base: &Series,
        new: &Series,
        same_bias_source: bool,
        clock_step_ns: f64,
        threshold: Share,
    ) -> Change {
        let biases = bias_ns(base).zip(bias_ns(new)).filter(|_| same_bias_source);
        let net = biases.is_some();
        let bias_gap_ns = biases
            .map_or(0.0, |(one, other)| (one - other).abs() * brackets(base).max(brackets(new)));
        let [before, after] = [base, new].map(|series| Median::of(series, net, clock_step_ns));
        let medians_ns = [before, after].map(|median| median.map_or(0.0, |median| median.ns));
        let unknown = |share, interval, why| Change {
            medians_ns,
            share,
            interval,
            verdict: Verdict::Unknown,
            why,
        };
        let (Some(before), Some(after)) = (before, after) else {
            return unknown(None, None, "no samples");
        };
        if before.ns <= 0.0 || after.ns <= 0.0 {
            return unknown(None, None, "not above the bias");
        }
        let share = after.ns / before.ns - 1.0;
        if base.upper_bound() || new.upper_bound() {
            return unknown(Some(share), None, "starved");
        }
        let Some(interval) = share_interval(before, after) else {
            return unknown(Some(share), None, "too few samples");
        };
        let bias_gap = bias_gap_ns / before.ns;
        let widened = [(interval[0] - bias_gap).max(-1.0), interval[1] + bias_gap];
        let Some(verdict) = judge(share, widened, bias_gap, threshold) else {
            let why = match judge(share, interval, 0.0, threshold) {
                Some(_) => "the biases differ",
                None => "interval too wide",
            };
            return unknown(Some(share), Some(widened), why);
        };
        Change { medians_ns, share: Some(share), interval: Some(widened), verdict, why: "" }
    }
}

impl Median {
    fn of(series: &Series, net: bool, clock_step_ns: f64) -> Option<Median> {
        let raw = series.raw_ns()?;
        let stats = if net { series.net_ns()? } else { raw };
        let (ns, bias) = (stats.median(), raw.median() - stats.median());
        // The clock cannot distinguish times within half a step.
        let half_step = clock_step_ns.max(step_ns(raw.median())) / 2.0;
        let interval = series.ci95_ns().map(|[low, high]| {
            [(low - bias).min(ns - half_step), (high - bias).max(ns + half_step)]
        });
        Some(Median { ns, interval })
    }
}

/// Returns the bias per bracket of a series. A merged series may have several; this is the
/// median's.
fn bias_ns(series: &Series) -> Option<f64> {
    Some((series.raw_ns()?.median() - series.net_ns()?.median()) / brackets(series))
}

/// Returns the mean number of brackets whose times add up to one sample.
fn brackets(series: &Series) -> f64 {
    series.launches().map_or(1.0, |launches| launches.mean().max(1.0))
}

/// Returns the verdict on a change by `share`, up to `bias_gap` of which the difference of the
/// biases may have caused. `None` if it cannot be told.
fn judge(
    share: f64,
    [low, high]: [f64; 2],
    bias_gap: f64,
    Share(threshold): Share,
) -> Option<Verdict> {
    match share {
        _ if share - bias_gap > threshold && low > 0.0 => Some(Verdict::Slower),
        _ if share + bias_gap < -threshold && high < 0.0 => Some(Verdict::Faster),
        _ if share.abs() <= threshold && high - share <= threshold && share - low <= threshold => {
            Some(Verdict::Same)
        }
        _ => None,
    }
}

/// Returns the confidence interval of the share by which a median changed.
///
/// Uses the method of variance estimates recovery (MOVER; Zou and Donner, Statistics in Medicine
/// 27, 2008) for the difference of two logarithms: the distance to each bound is the root of the
/// sum of the squares of the two medians' distances to the bounds that lead there.
fn share_interval(before: Median, after: Median) -> Option<[f64; 2]> {
    let [before_low, before_high] = before.interval?;
    let [after_low, after_high] = after.interval?;
    let distance = |ns: f64, bound: f64| (bound > 0.0).then(|| (bound / ns).ln());
    let down = distance(after.ns, after_low)?.hypot(distance(before.ns, before_high)?);
    let up = distance(after.ns, after_high)?.hypot(distance(before.ns, before_low)?);
    let ratio = after.ns / before.ns;
    Some([ratio * (-down).exp() - 1.0, ratio * up.exp() - 1.0])
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::Slower => f.write_str("slower"),
            Verdict::Faster => f.write_str("faster"),
            Verdict::Same => f.write_str("same"),
            Verdict::Unknown => write!(f, "unknown: {}", self.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(ns: f64, low: f64, high: f64) -> Median {
        Median { ns, interval: Some([low, high]) }
    }

    #[test]
    fn share_interval_combines_both_medians() {
        let [low, high] =
            share_interval(median(100.0, 99.0, 101.0), median(110.0, 108.9, 111.1)).unwrap();
        assert!(low < 0.1 && 0.1 < high, "{low} {high}");
        // 1 % on either side of both medians: 1.42 %, the root of 1² + 1².
        assert!((low - (1.1 * (1.0 - 0.0142) - 1.0)).abs() < 1e-3, "{low}");
        assert!((high - (1.1 * (1.0 + 0.0142) - 1.0)).abs() < 1e-3, "{high}");
    }

    #[test]
    fn share_interval_needs_positive_bounds() {
        assert_eq!(share_interval(median(10.0, 0.0, 20.0), median(10.0, 9.0, 11.0)), None);
        let unknown = Median { ns: 5.0, interval: None };
        assert_eq!(share_interval(unknown, median(10.0, 9.0, 11.0)), None);
    }

    /// Draws pairs of samples from one distribution, with a fixed seed.
    #[test]
    fn share_interval_covers_zero_in_95_percent() {
        let mut random = fastrand::Rng::with_seed(1);
        // The 18th and the 33rd of 50 samples bound the median.
        let mut sample = || {
            let mut values: Vec<f64> =
                (0..50).map(|_| 1000.0 / (1.0 - 0.9 * random.f64())).collect();
            values.sort_by(f64::total_cmp);
            median(values[24], values[17], values[32])
        };
        let covered = (0..2000)
            .filter(|_| {
                let [low, high] = share_interval(sample(), sample()).unwrap();
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!((1860..=1980).contains(&covered), "{covered} of 2000");
    }
}
