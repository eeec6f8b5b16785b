//! How the median of a series changed.

use std::fmt;

use gpu_time_report::{Series, step_ns};

use super::thresholds::Share;

/// How the median of a series changed.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// Before and after; 0 where there were no samples.
    pub medians_ns: [f64; 2],
    /// By which share of the first, `None` where one is not known.
    pub share: Option<f64>,
    /// What holds the share with 95 % confidence.
    pub interval: Option<[f64; 2]>,
    pub verdict: Verdict,
    /// Why there is no better one.
    why: &'static str,
}

/// In the order of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Slower,
    Faster,
    Unknown,
    Same,
}

/// A median, and between which times it lies.
#[derive(Clone, Copy)]
struct Median {
    ns: f64,
    interval: Option<[f64; 2]>,
}

impl Change {
    /// From one series to the other, times of the clock advancing by `clock_step_ns`, where a share of
    /// `threshold` is the most that does not matter. Net times are compared if their bias is `alike`, of
    /// one source, and a change within what it differs by is none.
    pub fn of(
        base: &Series,
        new: &Series,
        alike: bool,
        clock_step_ns: f64,
        threshold: Share,
    ) -> Change {
        let biases = bias_ns(base).zip(bias_ns(new)).filter(|_| alike);
        let net = biases.is_some();
        let apart_ns =
            biases.map_or(0.0, |(was, is)| (was - is).abs() * brackets(base).max(brackets(new)));
        let [was, is] = [base, new].map(|series| Median::of(series, net, clock_step_ns));
        let medians_ns = [was, is].map(|median| median.map_or(0.0, |median| median.ns));
        let unknown = |share, interval, why| Change {
            medians_ns,
            share,
            interval,
            verdict: Verdict::Unknown,
            why,
        };
        let (Some(was), Some(is)) = (was, is) else {
            return unknown(None, None, "no samples");
        };
        if was.ns <= 0.0 || is.ns <= 0.0 {
            return unknown(None, None, "no longer than the bias");
        }
        let share = is.ns / was.ns - 1.0;
        if base.upper_bound() || new.upper_bound() {
            return unknown(Some(share), None, "starved");
        }
        let Some(interval) = interval(was, is) else {
            return unknown(Some(share), None, "too few samples");
        };
        let by_bias = apart_ns / was.ns;
        let wider = [(interval[0] - by_bias).max(-1.0), interval[1] + by_bias];
        let Some(verdict) = judged(share, wider, by_bias, threshold) else {
            let why = match judged(share, interval, 0.0, threshold) {
                Some(_) => "the bias is another",
                None => "too wide an interval",
            };
            return unknown(Some(share), Some(wider), why);
        };
        let interval = wider;
        Change { medians_ns, share: Some(share), interval: Some(interval), verdict, why: "" }
    }
}

impl Median {
    fn of(series: &Series, net: bool, clock_step_ns: f64) -> Option<Median> {
        let raw = series.raw_ns()?;
        let stats = if net { series.net_ns()? } else { raw };
        let (ns, bias) = (stats.median(), raw.median() - stats.median());
        // Times nearer to each other look the same.
        let half_step = clock_step_ns.max(step_ns(raw.median())) / 2.0;
        let interval = series.ci95_ns().map(|[low, high]| {
            [(low - bias).min(ns - half_step), (high - bias).max(ns + half_step)]
        });
        Some(Median { ns, interval })
    }
}

/// What is removed for each bracket of a series; a merged one may have had several, and this is the median's.
fn bias_ns(series: &Series) -> Option<f64> {
    Some((series.raw_ns()?.median() - series.net_ns()?.median()) / brackets(series))
}

/// How many brackets a time of it is the sum of.
fn brackets(series: &Series) -> f64 {
    series.launches().map_or(1.0, |launches| launches.mean().max(1.0))
}

/// What is to be said of a change by `share`, of which `by_bias` may be none of the samples' doing.
fn judged(
    share: f64,
    [low, high]: [f64; 2],
    by_bias: f64,
    Share(threshold): Share,
) -> Option<Verdict> {
    match share {
        _ if share - by_bias > threshold && low > 0.0 => Some(Verdict::Slower),
        _ if share + by_bias < -threshold && high < 0.0 => Some(Verdict::Faster),
        _ if share.abs() <= threshold && high - share <= threshold && share - low <= threshold => {
            Some(Verdict::Same)
        }
        _ => None,
    }
}

/// The interval of the share by which a median changed, from those of both.
///
/// Zou and Donner's method of variance estimates recovery (Statistics in Medicine 27, 2008) for the
/// difference of two logarithms: the reach on each side is the root of the sum of the squares of the
/// two reaches that lead there.
fn interval(was: Median, is: Median) -> Option<[f64; 2]> {
    let [was_low, was_high] = was.interval?;
    let [is_low, is_high] = is.interval?;
    let reach = |ns: f64, bound: f64| (bound > 0.0).then(|| (bound / ns).ln());
    let down = reach(is.ns, is_low)?.hypot(reach(was.ns, was_high)?);
    let up = reach(is.ns, is_high)?.hypot(reach(was.ns, was_low)?);
    let ratio = is.ns / was.ns;
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
    fn the_interval_holds_the_share_and_is_wider_than_either() {
        let [low, high] =
            interval(median(100.0, 99.0, 101.0), median(110.0, 108.9, 111.1)).unwrap();
        assert!(low < 0.1 && 0.1 < high, "{low} {high}");
        // A percent each way of both: the root of two percent.
        assert!((low - (1.1 * (1.0 - 0.0142) - 1.0)).abs() < 1e-3, "{low}");
        assert!((high - (1.1 * (1.0 + 0.0142) - 1.0)).abs() < 1e-3, "{high}");
    }

    #[test]
    fn a_bound_at_nothing_makes_no_interval() {
        assert_eq!(interval(median(10.0, 0.0, 20.0), median(10.0, 9.0, 11.0)), None);
        let unknown = Median { ns: 5.0, interval: None };
        assert_eq!(interval(unknown, median(10.0, 9.0, 11.0)), None);
    }

    /// Medians of two samples from one distribution, over and over, by a generator of fixed seed.
    #[test]
    fn it_holds_no_change_as_often_as_promised() {
        let mut random = fastrand::Rng::with_seed(1);
        // Of 50 samples, the 18th and the 33rd hold the median.
        let mut sample = || {
            let mut values: Vec<f64> =
                (0..50).map(|_| 1000.0 / (1.0 - 0.9 * random.f64())).collect();
            values.sort_by(f64::total_cmp);
            median(values[24], values[17], values[32])
        };
        let held = (0..2000)
            .filter(|_| {
                let [low, high] = interval(sample(), sample()).unwrap();
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!((1860..=1980).contains(&held), "{held} of 2000");
    }
}
