//! The stopping rule for a run: decides whether its series have settled.

use std::time::Duration;

use crate::settle::options::Settle;
use crate::settle::unmet::{self, Unmet, UnmetReason};
use gpu_time_report::units::two_digit_percent;
use gpu_time_report::{self as report, Series, Site, Trend};

/// The assumed resolution of event times for a device on which it was not measured.
pub(super) const DEFAULT_STEP_NS: f64 = 1.0;

/// The shortest time between two updates of a run's progress line.
pub(super) const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// The minimum number of independent samples of a series whose samples depend on each other. With
/// fewer, the estimate of their number is too rough for an interval that ends a run.
const FEWEST_INDEPENDENT: f64 = 25.0;

/// A trend is a drift if it exceeds this many of its standard errors.
const DRIFT_ERRORS: f64 = 4.0;

/// The progress of a run: the series that have settled and those that have not.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    /// The number of series that have settled.
    pub settled: usize,
    /// The series that have not settled.
    pub unmet: Vec<Unmet>,
}

impl Verdict {
    /// Evaluates the sites called during a run, using only the run's counts and samples. A site
    /// without series is unmet if its calls were warm-up calls or not sampled.
    ///
    /// `step_ns` returns the resolution of event times on a device.
    pub fn of(settle: &Settle, run: &[Site], step_ns: impl Fn(&str) -> Option<f64>) -> Verdict {
        let mut verdict = Verdict { settled: 0, unmet: Vec::new() };
        for site in run {
            for series in &site.series {
                let step_ns = step_ns(&series.device).unwrap_or(DEFAULT_STEP_NS);
                match reason(settle, step_ns, series) {
                    None => verdict.settled += 1,
                    Some(reason) => {
                        verdict.unmet.push(Unmet::new(site.name.to_owned(), Some(series), reason));
                    }
                }
            }
            let is_passed_over = site.sample_rate > 0.0 && site.unsampled > 0;
            let reason = match (site.warmup > 0, is_passed_over) {
                (true, _) => Some(UnmetReason::Warmup),
                (false, true) => Some(UnmetReason::Unsampled),
                (false, false) => None,
            };
            if let Some(reason) = reason.filter(|_| site.series.is_empty()) {
                verdict.unmet.push(Unmet::new(site.name.to_owned(), None, reason));
            }
        }
        verdict
    }

    /// Returns the number of series, settled or not.
    pub fn len(&self) -> usize {
        self.settled + self.unmet.len()
    }

    /// Returns `true` if there is nothing to settle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the factor by which the number of samples must grow for every series to settle, as
    /// far as that can be estimated.
    pub fn missing_factor(&self) -> f64 {
        self.unmet.iter().filter_map(Unmet::missing_factor).fold(1.0, f64::max)
    }

    /// Describes the progress after so many calls.
    pub fn line(&self, calls: u64, elapsed: Duration) -> String {
        let widest = self.unmet.iter().filter_map(|unmet| unmet.margin).reduce(f64::max);
        let widest = widest
            .map_or(String::new(), |margin| format!(", widest ±{}", two_digit_percent(margin)));
        let (settled, all, seconds) = (self.settled, self.len(), elapsed.as_secs_f64());
        format!("{settled} of {all} settled{widest}, {calls} calls, {seconds:.1} s")
    }

    /// Returns `true` if every series has settled, except those that more calls cannot settle.
    pub fn is_over(&self) -> bool {
        !self.unmet.iter().any(Unmet::is_open)
    }
}

/// Returns the reason why a series has not settled, or `None` if it has.
pub(super) fn reason(settle: &Settle, step_ns: f64, series: &Series) -> Option<UnmetReason> {
    let is_enough = |count: u64| count >= settle.min_samples;
    let lost = series.lost.iter().map(|(_, count)| count).sum();
    if series.measured + series.opened() == 0 && is_enough(lost) && series.in_flight == 0 {
        return Some(UnmetReason::Lost(lost));
    }
    if unmet::samples(series) == 0 && is_enough(series.at_floor) {
        // Every bracket was empty, so there is no time that could settle.
        return None;
    }
    if !is_enough(unmet::samples(series)) {
        return Some(UnmetReason::Few(settle.min_samples));
    }
    if let Some(reason) = change(settle, step_ns, series) {
        return Some(reason);
    }
    // Earlier, shorter batches may have shown two modes that the present ones average out. Such
    // modes explain a wide interval.
    let past_modes = series.dependence.and_then(|dependence| dependence.past_modes);
    let modes = past_modes.zip(series.raw_ns);
    let modes = modes.map(|(modes, raw)| UnmetReason::Modes(modes.apart_ns / raw.median));
    let Some([low, high]) = series.ci95_ns else {
        let independent = series.independent().unwrap_or_default();
        return Some(modes.unwrap_or(UnmetReason::Dependent(independent)));
    };
    let is_narrow = is_one_step(low, high, step_ns)
        || unmet::margin(series).is_some_and(|margin| margin <= settle.margin);
    let is_explained = past_modes.is_some_and(|modes| 2.0 * modes.apart_ns > high - low);
    let wide = UnmetReason::Wide(settle.margin);
    (!is_narrow).then(|| modes.filter(|_| is_explained).unwrap_or(wide))
}

/// Returns `true` if these times are no further apart than the clock and the histogram can resolve.
fn is_one_step(low: f64, high: f64, step_ns: f64) -> bool {
    // Half a step more, because both ends are rounded.
    high - low <= 1.5 * report::step_ns(high).max(step_ns)
}

/// Returns the reason if the samples do not represent later ones: they change with time, or stay
/// alike for so long that too few are independent.
fn change(settle: &Settle, step_ns: f64, series: &Series) -> Option<UnmetReason> {
    let (raw, dependence) = (series.raw_ns?, series.dependence?);
    if is_one_step(raw.p5, raw.p95, step_ns) {
        return None;
    }
    let median = series.net_ns.unwrap_or(raw).median;
    let matters =
        |ns: f64| ns.abs() > settle.margin * median && !is_one_step(0.0, ns.abs(), step_ns);
    if let Some(modes) = dependence.modes.filter(|modes| matters(modes.apart_ns)) {
        return Some(UnmetReason::Modes(modes.apart_ns / median));
    }
    let is_drift = |trend: &Trend| {
        trend.change_ns.abs() > DRIFT_ERRORS * trend.error_ns && matters(2.0 * trend.change_ns)
    };
    if let Some(trend) = dependence.trend.filter(is_drift) {
        return Some(UnmetReason::Drift(trend.change_ns / median));
    }
    let is_few = dependence.batches.is_some() && dependence.independent < FEWEST_INDEPENDENT;
    is_few.then_some(UnmetReason::Dependent(dependence.independent))
}

#[cfg(test)]
mod tests;
