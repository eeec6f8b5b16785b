//! Whether what a run touched has settled: pure, from what the run counted and measured.

use crate::settle::options::Settle;
use crate::settle::unmet::{Obstacle, Unmet};
use gpu_time_report::{self as report, Series, Site};

/// Where the step of a device's events is not known, times count as told apart to the nanosecond.
pub(super) const NO_STEP_NS: f64 = 1.0;

/// How far a run has come.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    /// How many of the series touched have settled.
    pub settled: usize,
    /// Those that have not.
    pub unmet: Vec<Unmet>,
}

impl Verdict {
    /// Of what the run touched, with what it counted and measured itself. A site without series is touched
    /// too, when calls of it served to warm up or were not sampled.
    ///
    /// `step_ns` is the step in which the clock of a device advances.
    pub fn of(settle: &Settle, run: &[Site], step_ns: impl Fn(&str) -> Option<f64>) -> Verdict {
        let mut verdict = Verdict { settled: 0, unmet: Vec::new() };
        for site in run {
            for series in site.series() {
                let step_ns = step_ns(series.device()).unwrap_or(NO_STEP_NS);
                match obstacle(settle, step_ns, series) {
                    None => verdict.settled += 1,
                    Some(obstacle) => verdict.unmet.push(Unmet {
                        site: site.name().to_owned(),
                        series: series.place(),
                        samples: samples(series),
                        margin: margin(series),
                        obstacle,
                    }),
                }
            }
            let is_passed_over = site.sample_rate() > 0.0 && site.unsampled() > 0;
            let obstacle = match (site.warmup() > 0, is_passed_over) {
                (true, _) => Some(Obstacle::Warmup),
                (false, true) => Some(Obstacle::Unsampled),
                (false, false) => None,
            };
            if let Some(obstacle) = obstacle.filter(|_| site.series().is_empty()) {
                verdict.unmet.push(Unmet {
                    site: site.name().to_owned(),
                    series: String::new(),
                    samples: 0,
                    margin: None,
                    obstacle,
                });
            }
        }
        verdict
    }

    /// How many series are to settle.
    pub fn len(&self) -> usize {
        self.settled + self.unmet.len()
    }

    /// Whether nothing is to settle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether everything has settled, but for what never will.
    pub fn is_over(&self) -> bool {
        !self.unmet.iter().any(Unmet::is_open)
    }
}

/// The samples that the figures are over.
fn samples(series: &Series) -> u64 {
    if series.fed() > 0 { series.fed() } else { series.starved() }
}

/// What keeps a series from having settled.
pub(super) fn obstacle(settle: &Settle, step_ns: f64, series: &Series) -> Option<Obstacle> {
    let is_enough = |count: u64| count >= settle.min_samples;
    let lost = series.lost().map(|(_, count)| count).sum();
    if series.measured() == 0 && is_enough(lost) && series.in_flight() == 0 {
        return Some(Obstacle::Lost(lost));
    }
    if series.fed() + series.starved() == 0 && is_enough(series.at_floor()) {
        // Nothing ever ran: there is no time to be known better.
        return None;
    }
    let Some([low, high]) = series.ci95_ns().filter(|_| is_enough(samples(series))) else {
        return Some(Obstacle::Few(settle.min_samples));
    };
    // Half a step for what rounding does to either end.
    let is_one_step = high - low <= 1.5 * report::step_ns(high).max(step_ns);
    let is_narrow = is_one_step || margin(series).is_some_and(|margin| margin <= settle.margin);
    (!is_narrow).then_some(Obstacle::Wide(settle.margin))
}

/// Half the width of the median's interval as a share of the median that the report shows.
pub(super) fn margin(series: &Series) -> Option<f64> {
    let [low, high] = series.ci95_ns()?;
    let median = series.net_ns().or(series.raw_ns())?.median();
    Some((high - low) / 2.0 / median).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests;
