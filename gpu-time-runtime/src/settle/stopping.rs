//! The stopping rule for a run: decides whether its series have settled.

use crate::settle::options::Settle;
use crate::settle::unmet::{self, Unmet, UnmetReason};
use gpu_time_report::{self as report, Series, Site};

/// The assumed resolution of event times for a device on which it was not measured.
pub(super) const DEFAULT_STEP_NS: f64 = 1.0;

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
            for series in site.series() {
                let step_ns = step_ns(series.device()).unwrap_or(DEFAULT_STEP_NS);
                match reason(settle, step_ns, series) {
                    None => verdict.settled += 1,
                    Some(reason) => {
                        verdict.unmet.push(Unmet::new(
                            site.name().to_owned(),
                            Some(series),
                            reason,
                        ));
                    }
                }
            }
            let is_passed_over = site.sample_rate() > 0.0 && site.unsampled() > 0;
            let reason = match (site.warmup() > 0, is_passed_over) {
                (true, _) => Some(UnmetReason::Warmup),
                (false, true) => Some(UnmetReason::Unsampled),
                (false, false) => None,
            };
            if let Some(reason) = reason.filter(|_| site.series().is_empty()) {
                verdict.unmet.push(Unmet::new(site.name().to_owned(), None, reason));
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

    /// Returns `true` if every series has settled, except those that more calls cannot settle.
    pub fn is_over(&self) -> bool {
        !self.unmet.iter().any(Unmet::is_open)
    }
}

/// Returns the reason why a series has not settled, or `None` if it has.
pub(super) fn reason(settle: &Settle, step_ns: f64, series: &Series) -> Option<UnmetReason> {
    let is_enough = |count: u64| count >= settle.min_samples;
    let lost = series.lost().map(|(_, count)| count).sum();
    if series.measured() == 0 && is_enough(lost) && series.in_flight() == 0 {
        return Some(UnmetReason::Lost(lost));
    }
    if series.fed() + series.starved() == 0 && is_enough(series.at_floor()) {
        // Every bracket was empty, so there is no time that could settle.
        return None;
    }
    let Some([low, high]) = series.ci95_ns().filter(|_| is_enough(unmet::samples(series))) else {
        return Some(UnmetReason::Few(settle.min_samples));
    };
    // Allow half a step more, because both ends are rounded.
    let is_one_step = high - low <= 1.5 * report::step_ns(high).max(step_ns);
    let is_narrow =
        is_one_step || unmet::margin(series).is_some_and(|margin| margin <= settle.margin);
    (!is_narrow).then_some(UnmetReason::Wide(settle.margin))
}

#[cfg(test)]
mod tests;
