//! Series that did not settle.

use std::fmt;

use crate::types::attribute::Clock;
use gpu_time_report::Series;
use gpu_time_report::units::two_digit_percent;

/// A series, function or graph that did not settle.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unmet {
    /// The function's name in the report, or `graph of N calls`.
    pub site: String,
    /// The series within the function: the device, followed by the launch, `in graphs`, the cache
    /// state unless it is as found, and the key, where they apply. Empty without a series: all calls
    /// were warm-up calls or not sampled, or a graph was refused.
    pub series: String,
    /// The number of fed samples in this run, or of starved ones if none are fed, or of opened
    /// calls with `clock = "kernels"`.
    pub samples: u64,
    /// Half the width of the median's 95 % interval as a fraction of the median, or `None` if there
    /// are too few samples for an interval.
    pub margin: Option<f64>,
    pub(super) reason: UnmetReason,
}

/// The reason why a series has not settled.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnmetReason {
    /// All calls so far were warm-up calls.
    Warmup,
    /// No call so far was sampled.
    Unsampled,
    /// Every bracket was lost, this many in total, so more calls will not help.
    Lost(u64),
    /// The run has fewer samples than this.
    Few(u64),
    /// Half the width of the interval exceeds this margin.
    Wide(f64),
    /// The times changed steadily, by this share of the median from the first to the last.
    Drift(f64),
    /// The times switch between two long-lasting levels, which are this share of the median apart.
    Modes(f64),
    /// The samples are worth only this number of independent samples.
    Dependent(f64),
    /// The calls could not be captured or replayed, for this reason.
    Refused(String),
}

impl Unmet {
    /// Describes a site's series, or a site without series.
    pub(super) fn new(site: String, series: Option<&Series>, reason: UnmetReason) -> Unmet {
        Unmet {
            site,
            series: series.map(Series::place).unwrap_or_default(),
            samples: series.map_or(0, samples),
            margin: series.and_then(margin),
            reason,
        }
    }

    /// Returns the reason why the series did not settle: `warmup`, all calls were warm-up calls;
    /// `unsampled`, no call was sampled; `lost`, no bracket gave a sample; `few`, there are too few
    /// samples; `wide`, half the interval is wider than the margin; `drift`, the times changed steadily;
    /// `modes`, they switch between two long-lasting levels; `dependent`, neighbouring samples are
    /// so alike that too few are independent; `refused`, the calls could not be captured or
    /// replayed.
    pub fn reason(&self) -> &str {
        match self.reason {
            UnmetReason::Warmup => "warmup",
            UnmetReason::Unsampled => "unsampled",
            UnmetReason::Lost(_) => "lost",
            UnmetReason::Few(_) => "few",
            UnmetReason::Wide(_) => "wide",
            UnmetReason::Drift(_) => "drift",
            UnmetReason::Modes(_) => "modes",
            UnmetReason::Dependent(_) => "dependent",
            UnmetReason::Refused(_) => "refused",
        }
    }

    /// Returns the factor by which the number of samples must grow, if it can be estimated.
    pub(super) fn missing_factor(&self) -> Option<f64> {
        match self.reason {
            UnmetReason::Few(wanted) => Some(wanted as f64 / self.samples as f64),
            UnmetReason::Wide(wanted) => self.margin.map(|margin| (margin / wanted).powi(2)),
            _ => None,
        }
    }

    /// Returns `true` if more calls might help.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.reason, UnmetReason::Lost(_) | UnmetReason::Refused(_))
    }
}

/// Formats the series and the reason on one line.
impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unmet { site, series, samples, margin, reason } = self;
        write!(f, "`{site}`")?;
        if !series.is_empty() {
            write!(f, " on {series}")?;
        }
        let wanted = match reason {
            UnmetReason::Warmup => return f.write_str(": all calls were warm-up calls"),
            UnmetReason::Unsampled => return f.write_str(": no call was sampled"),
            UnmetReason::Lost(lost) => return write!(f, ": no samples, {lost} lost"),
            UnmetReason::Refused(why) => return write!(f, ": {why}"),
            UnmetReason::Few(wanted) => format!("{wanted} samples"),
            UnmetReason::Wide(wanted) => format!("±{}", two_digit_percent(*wanted)),
            UnmetReason::Drift(change) => {
                let sign = if *change < 0.0 { '-' } else { '+' };
                let change = two_digit_percent(change.abs());
                return write!(f, ": the times drifted by {sign}{change} over {samples} samples");
            }
            UnmetReason::Modes(apart) => {
                let apart = two_digit_percent(*apart);
                return write!(f, ": the times switch between two levels, {apart} apart");
            }
            UnmetReason::Dependent(independent) => {
                return write!(
                    f,
                    ": {samples} samples are worth only {independent:.0} independent ones"
                );
            }
        };
        match margin {
            None => f.write_str(": the median is unknown")?,
            Some(margin) => write!(f, ": the median is known to ±{}", two_digit_percent(*margin))?,
        }
        write!(f, " after {samples} samples, expected {wanted}")
    }
}

/// Returns the number of samples on which the statistics are based.
pub(super) fn samples(series: &Series) -> u64 {
    match (series.fed, series.starved) {
        // Without event pairs, the samples are the opened calls.
        (0, 0) if series.clock == Clock::Kernels => series.opened(),
        (0, starved) => starved,
        (fed, _) => fed,
    }
}

/// Returns half the width of the median's interval as a fraction of the reported median.
pub(super) fn margin(series: &Series) -> Option<f64> {
    let [low, high] = series.ci95_ns?;
    let median = series.net_ns.or(series.raw_ns)?.median;
    Some((high - low) / 2.0 / median).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_series_and_reason() {
        let unmet = |series: &str, samples, margin, reason| Unmet {
            site: "app::f".to_owned(),
            series: series.to_owned(),
            samples,
            margin,
            reason,
        };
        for (unmet, line) in [
            (
                unmet("cuda:0, cold", 80, Some(0.0132), UnmetReason::Wide(0.005)),
                "`app::f` on cuda:0, cold: the median is known to ±1.3% after 80 samples, expected ±0.50%",
            ),
            (
                unmet("cuda:0", 8, Some(0.2), UnmetReason::Few(50)),
                "`app::f` on cuda:0: the median is known to ±20% after 8 samples, expected 50 samples",
            ),
            (
                unmet("host", 3, None, UnmetReason::Few(50)),
                "`app::f` on host: the median is unknown after 3 samples, expected 50 samples",
            ),
            (
                unmet("cuda:0", 0, None, UnmetReason::Lost(64)),
                "`app::f` on cuda:0: no samples, 64 lost",
            ),
            (
                unmet("cuda:0", 900, None, UnmetReason::Drift(-0.012)),
                "`app::f` on cuda:0: the times drifted by -1.2% over 900 samples",
            ),
            (
                unmet("cuda:0", 900, None, UnmetReason::Modes(0.18)),
                "`app::f` on cuda:0: the times switch between two levels, 18% apart",
            ),
            (
                unmet("cuda:0", 900, None, UnmetReason::Dependent(7.2)),
                "`app::f` on cuda:0: 900 samples are worth only 7 independent ones",
            ),
            (unmet("", 0, None, UnmetReason::Warmup), "`app::f`: all calls were warm-up calls"),
        ] {
            assert_eq!(unmet.to_string(), line);
        }
    }
}
