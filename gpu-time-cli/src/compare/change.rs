//! The change of a series' median, its confidence interval, and the verdict.

use std::fmt;

use gpu_time_report::{Run, Series, Site, step_ns};
use serde::Serialize;

use super::evidence::{Evidence, SideMedians, rejected};
use super::thresholds::Share;

/// The distance of the bounds of a 95 % interval from the estimate, in standard errors.
const BOUNDS: f64 = 1.96;

/// A series in both reports, and the function of the base.
pub struct Pair<'a> {
    pub site: &'a Site,
    pub series: [&'a Series; 2],
    /// The biases come from the same source, so net times are comparable.
    pub same_bias_source: bool,
    pub clock_step_ns: f64,
}

/// The change of a series' median between two sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// The median in the base: with several runs, the geometric mean of the runs' medians; 0 if
    /// either series has no samples.
    pub base_median_ns: f64,
    /// The same in the new report.
    pub new_median_ns: f64,
    /// The numbers of runs, or of blocks in an experiment.
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
}

/// A verdict on a change, in the order in which rows are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Slower,
    Faster,
    #[default]
    Unknown,
    Same,
}

impl Change {
    /// Compares two series. If both have several runs, uses the differences between runs; otherwise
    /// uses the samples within the runs and the assumed difference between runs.
    ///
    /// Compares net times if both reports have them and the biases come from the same source,
    /// otherwise raw times. If the biases differ, widens the interval by their difference.
    pub fn of(pair: &Pair, threshold: Share, Share(between_runs): Share) -> Change {
        let Pair { series: [base, new], same_bias_source, clock_step_ns, .. } = *pair;
        let biases = bias_ns(base).zip(bias_ns(new)).filter(|_| same_bias_source);
        let net = biases.is_some() && [base, new].iter().all(|series| has_net_runs(series));
        let bias_gap_ns = biases
            .filter(|_| net)
            .map_or(0.0, |(one, other)| (one - other).abs() * brackets(base).max(brackets(new)));
        let [before, after] = [base, new].map(|series| medians_ns(series, net));
        let runs = [before.len(), after.len()];
        if runs.contains(&0) {
            return Change { runs, why: "no samples", ..Change::default() };
        }
        let [base_median_ns, new_median_ns] =
            [&before, &after].map(|medians| geometric_mean(medians));
        let unknown = Change { base_median_ns, new_median_ns, runs, ..Change::default() };
        if before.iter().chain(&after).any(|&ns| ns <= 0.0) {
            return Change { why: "not above the bias", ..unknown };
        }
        let [before, after] = [(base, before), (new, after)]
            .map(|(series, medians)| side(series, &medians, net, clock_step_ns));
        let share = (after.mean() - before.mean()).exp() - 1.0;
        let unknown = Change { share: Some(share), ..unknown };
        if base.upper_bound || new.upper_bound {
            return Change { why: "starved", ..unknown };
        }
        let Some(evidence) = Evidence::of(&before, &after, between_runs) else {
            return Change { why: "too few samples", ..unknown };
        };
        let interval = evidence.interval();
        let bias_gap = bias_gap_ns / base_median_ns;
        let widened = [(interval[0] - bias_gap).max(-1.0), interval[1] + bias_gap];
        if !widened.iter().all(|bound| bound.is_finite()) {
            return Change { why: "interval too wide", ..unknown };
        }
        let known = Change {
            interval: Some(widened),
            p_value: Some(evidence.p_value(bias_gap)),
            why: "",
            ..unknown
        };
        if let Some(verdict) = judge(share, widened, bias_gap, threshold) {
            return Change { verdict, ..known };
        }
        let alike = Evidence::of(&before, &after, 0.0).map(|evidence| evidence.interval());
        let would_be_known = |interval, gap| judge(share, interval, gap, threshold).is_some();
        let why = match alike {
            _ if would_be_known(interval, 0.0) => "the biases differ",
            Some(alike) if runs.contains(&1) && would_be_known(alike, 0.0) => "too few runs",
            _ => "interval too wide",
        };
        Change { why, ..known }
    }

    /// Returns `true` if the variation between runs is assumed, because a side has one run only.
    pub fn is_by_assumption(&self) -> bool {
        self.interval.is_some() && self.runs.contains(&1)
    }
}

/// Changes verdicts to unknown that may be chance, because many series are compared at once.
pub fn correct<'a>(changes: impl Iterator<Item = &'a mut Change>) {
    let judged: Vec<&mut Change> = changes.filter(|change| change.p_value.is_some()).collect();
    let p_values: Vec<f64> = judged.iter().filter_map(|change| change.p_value).collect();
    for (change, is_sound) in judged.into_iter().zip(rejected(&p_values)) {
        if !is_sound && matches!(change.verdict, Verdict::Slower | Verdict::Faster) {
            change.verdict = Verdict::Unknown;
            change.why = "may be chance among so many series";
        }
    }
}

/// Returns the runs with the kind of samples that the series shows: fed ones if there are any.
fn runs(series: &Series) -> impl Iterator<Item = &Run> {
    series.runs.iter().filter(|run| run.fed > 0 || series.fed == 0)
}

fn has_net_runs(series: &Series) -> bool {
    runs(series).all(|run| run.net_median_ns.is_some())
}

/// Returns the median of each run, or that of the series if single runs are unknown.
pub fn medians_ns(series: &Series, net: bool) -> Vec<f64> {
    let of_run = |run: &Run| run.net_median_ns.filter(|_| net).unwrap_or(run.raw_median_ns);
    let medians: Vec<f64> = runs(series).map(of_run).collect();
    if medians.is_empty() {
        let stats = if net { series.net_ns.as_ref() } else { series.raw_ns.as_ref() };
        return stats.map(|stats| stats.median).into_iter().collect();
    }
    medians
}

/// Returns the geometric mean, exactly for a single value.
fn geometric_mean(values: &[f64]) -> f64 {
    match values {
        [value] => *value,
        values => (values.iter().map(|ns| ns.ln()).sum::<f64>() / values.len() as f64).exp(),
    }
}

/// Returns the evidence that a series gives. All `medians` are positive.
fn side(series: &Series, medians: &[f64], net: bool, clock_step_ns: f64) -> SideMedians {
    let log_medians: Vec<f64> = medians.iter().map(|ns| ns.ln()).collect();
    let raw_median_ns = series.raw_ns.map_or(0.0, |raw| raw.median);
    // The clock cannot distinguish times within half a step.
    let half_step_ns = clock_step_ns.max(step_ns(raw_median_ns)) / 2.0;
    let ns = if net { series.net_ns.as_ref() } else { series.raw_ns.as_ref() }
        .map_or(0.0, |stats| stats.median);
    let within = series.ci95_ns.and_then(|[low, high]| {
        let bias = raw_median_ns - ns;
        let low = (low - bias).min(ns - half_step_ns);
        let high = (high - bias).max(ns + half_step_ns);
        (low > 0.0).then(|| [(ns / low).ln() / BOUNDS, (high / ns).ln() / BOUNDS])
    });
    SideMedians { log_medians, within, half_step: half_step_ns / ns }
}

/// Returns the bias per bracket of a series. A merged series may have several, of which this is the
/// one at the median.
fn bias_ns(series: &Series) -> Option<f64> {
    Some((series.raw_ns?.median - series.net_ns?.median) / brackets(series))
}

/// Returns the mean number of brackets whose times add up to one sample.
fn brackets(series: &Series) -> f64 {
    series.launches.map_or(1.0, |launches| launches.mean.max(1.0))
}

/// Returns the verdict on a change by `share`, of which the difference of the biases may account
/// for up to `bias_gap`. `None` if the change is not known well enough.
pub fn judge(
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

impl Verdict {
    /// Returns the name in all formats.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Unknown => "unknown",
            Verdict::Same => "same",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            "" => f.write_str(self.verdict.name()),
            why => write!(f, "{}: {why}", self.verdict.name()),
        }
    }
}
