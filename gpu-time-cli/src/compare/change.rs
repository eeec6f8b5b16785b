//! The change of a series between reports whose runs were not paired.

use gpu_time_report::judge::{Change, TOO_WIDE, Verdict};
use gpu_time_report::{Run, Series, SideMedians, Site, UnpairedRatio, step_ns};

use super::thresholds::Share;

/// The distance of the bounds of a 95 % interval from the estimate, in standard errors.
const BOUNDS: f64 = 1.96;

/// A series in both reports, and the function of the base.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub site: &'a Site,
    pub series: [&'a Series; 2],
    /// The biases come from the same source, so net times are comparable.
    pub same_bias_source: bool,
    pub clock_step_ns: f64,
}

impl Pair<'_> {
    /// Compares two series. If both have several runs, uses the differences between runs; otherwise
    /// uses the samples within the runs and the assumed difference between runs.
    ///
    /// Compares net times if possible. If the biases differ, widens the interval by their difference.
    pub fn change(&self, Share(threshold): Share, Share(between_runs): Share) -> Change {
        let medians = self.medians_ns();
        let runs = medians.each_ref().map(Vec::len);
        if runs.contains(&0) {
            return Change { runs, why: "no samples", ..Change::default() };
        }
        let is_positive = medians.iter().flatten().all(|&ns| ns > 0.0);
        let [base, new] = [0, 1].map(|side| self.side(side, &medians[side]));
        let [base_median_ns, new_median_ns] = medians.each_ref().map(|ns| geometric_mean(ns));
        let unknown = Change { base_median_ns, new_median_ns, runs, ..Change::default() };
        if !is_positive {
            return Change { why: "not above the bias", ..unknown };
        }
        let unknown = Change { share: Some((new.mean() - base.mean()).exp_m1()), ..unknown };
        if self.series.iter().any(|series| series.upper_bound) {
            return Change { why: "starved", ..unknown };
        }
        let judged = |between: f64, gap: f64| {
            let ratio = UnpairedRatio::of(&base, &new, between)?;
            Some(unknown.clone().judged(&ratio, gap, threshold))
        };
        let change = judged(between_runs, self.bias_gap_ns() / base_median_ns);
        let Some(change) = change else { return Change { why: "too few samples", ..unknown } };
        if change.why != TOO_WIDE || !runs.contains(&1) || between_runs == 0.0 {
            return change;
        }
        // A change within the threshold may be none, and the interval says how large it is at most.
        let share = change.share.unwrap_or_default();
        let at_most = change.interval.filter(|_| share.abs() <= threshold);
        let is_known = judged(0.0, 0.0).is_some_and(|change| change.verdict != Verdict::Unknown);
        Change {
            why: if is_known { "too few runs" } else { TOO_WIDE },
            at_most: at_most.map(|[low, high]| high.max(-low)),
            ..change
        }
    }

    /// Returns `true` if net times are compared: if both reports have them, and the biases come from
    /// the same source.
    pub fn is_net(&self) -> bool {
        let has_net = |series: &Series| {
            bias_ns(series).is_some() && runs(series).all(|run| run.net_median_ns.is_some())
        };
        self.same_bias_source && self.series.iter().all(|series| has_net(series))
    }

    /// Returns the medians of the runs of both series, or that of a series if single runs are unknown.
    pub fn medians_ns(&self) -> [Vec<f64>; 2] {
        let is_net = self.is_net();
        let of_run = |run: &Run| run.net_median_ns.filter(|_| is_net).unwrap_or(run.raw_median_ns);
        self.series.map(|series| {
            let medians: Vec<f64> = runs(series).map(of_run).collect();
            if medians.is_empty() { self.median_ns(series).into_iter().collect() } else { medians }
        })
    }

    /// Returns the median of all samples of a series.
    fn median_ns(&self, series: &Series) -> Option<f64> {
        let stats = if self.is_net() { series.net_ns } else { series.raw_ns };
        stats.map(|stats| stats.median)
    }

    /// Returns the time for which different biases may account.
    fn bias_gap_ns(&self) -> f64 {
        let [base, new] = self.series;
        let biases = bias_ns(base).zip(bias_ns(new)).filter(|_| self.is_net());
        let brackets = brackets(base).max(brackets(new));
        biases.map_or(0.0, |(one, other)| (one - other).abs() * brackets)
    }

    /// Returns the medians of a side, and how well they are known.
    fn side(&self, side: usize, medians: &[f64]) -> SideMedians {
        let series = self.series[side];
        let raw_ns = series.raw_ns.map_or(0.0, |raw| raw.median);
        let ns = self.median_ns(series).unwrap_or_default();
        // The clock cannot distinguish times within half a step.
        let half_step_ns = self.clock_step_ns.max(step_ns(raw_ns)) / 2.0;
        let within = series.ci95_ns.and_then(|[low, high]| {
            let bias = raw_ns - ns;
            let low = (low - bias).min(ns - half_step_ns);
            let high = (high - bias).max(ns + half_step_ns);
            (low > 0.0).then(|| [(ns / low).ln() / BOUNDS, (high / ns).ln() / BOUNDS])
        });
        let log_medians = medians.iter().map(|ns| ns.ln()).collect();
        SideMedians { log_medians, within, half_step: half_step_ns / ns }
    }
}

/// Returns the runs with the kind of samples that the series shows: fed ones if there are any.
fn runs(series: &Series) -> impl Iterator<Item = &Run> {
    series.runs.iter().filter(|run| run.fed > 0 || series.fed == 0)
}

/// Returns the geometric mean, exactly for a single value.
fn geometric_mean(values: &[f64]) -> f64 {
    match values {
        [value] => *value,
        values => (values.iter().map(|ns| ns.ln()).sum::<f64>() / values.len() as f64).exp(),
    }
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
