//! A series that did not settle, and why.

use std::fmt;

use crate::cuda::Refusal;
use gpu_time_report::units::percent;

/// A series that did not settle.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    pub(super) site: String,
    pub(super) series: String,
    pub(super) samples: u64,
    pub(super) margin: Option<f64>,
    pub(super) obstacle: Obstacle,
}

/// Why a series has not settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Obstacle {
    /// All calls so far served to warm up.
    Warmup,
    /// No call so far was sampled.
    Unsampled,
    /// So many brackets were lost and none gave a sample: more calls will not help.
    Lost(u64),
    /// The run gave fewer samples than this.
    Few(u64),
    /// The interval is wider than this margin.
    Wide(f64),
    /// The calls were not captured, or not replayed.
    Refused(Refusal),
}

impl Unmet {
    /// The function's name in the report, or `graph of N calls`.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// Which of its series: the device, then the launch and the cache state where they matter. Empty
    /// for a function that has none, because its calls served to warm up or were not sampled.
    pub fn series(&self) -> &str {
        &self.series
    }

    /// The samples that this run gave it: fed ones, or starved ones where there are no fed ones.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Half the width of the 95 % interval of the median, as a share of the median; `None` with too
    /// few samples to tell.
    pub fn margin(&self) -> Option<f64> {
        self.margin
    }

    /// Whether more calls might help.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.obstacle, Obstacle::Lost(_) | Obstacle::Refused(_))
    }
}

/// One line that says what was missing.
impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unmet { site, series, samples, margin, obstacle } = self;
        write!(f, "`{site}`")?;
        if !series.is_empty() {
            write!(f, " on {series}")?;
        }
        match obstacle {
            Obstacle::Warmup => return f.write_str(": all calls served to warm up"),
            Obstacle::Unsampled => return f.write_str(": no call was sampled"),
            Obstacle::Lost(lost) => return write!(f, ": no samples, {lost} lost"),
            Obstacle::Refused(refusal) => return write!(f, ": {refusal}"),
            Obstacle::Few(_) | Obstacle::Wide(_) => {}
        }
        match margin {
            None => f.write_str(": the median is not known")?,
            Some(margin) => write!(f, ": the median is known to ±{}", percent(*margin))?,
        }
        write!(f, " after {samples} samples, wanted ")?;
        match obstacle {
            Obstacle::Wide(wanted) => write!(f, "±{}", percent(*wanted)),
            Obstacle::Few(wanted) => write!(f, "{wanted} samples"),
            Obstacle::Warmup | Obstacle::Unsampled | Obstacle::Lost(_) | Obstacle::Refused(_) => {
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_missing() {
        let unmet = |series: &str, samples, margin, obstacle| Unmet {
            site: "app::f".to_owned(),
            series: series.to_owned(),
            samples,
            margin,
            obstacle,
        };
        for (unmet, line) in [
            (
                unmet("cuda:0, cold", 80, Some(0.0132), Obstacle::Wide(0.005)),
                "`app::f` on cuda:0, cold: the median is known to ±1.3% after 80 samples, wanted ±0.50%",
            ),
            (
                unmet("cuda:0", 8, Some(0.2), Obstacle::Few(50)),
                "`app::f` on cuda:0: the median is known to ±20% after 8 samples, wanted 50 samples",
            ),
            (
                unmet("host", 3, None, Obstacle::Few(50)),
                "`app::f` on host: the median is not known after 3 samples, wanted 50 samples",
            ),
            (
                unmet("cuda:0", 0, None, Obstacle::Lost(64)),
                "`app::f` on cuda:0: no samples, 64 lost",
            ),
            (unmet("", 0, None, Obstacle::Warmup), "`app::f`: all calls served to warm up"),
        ] {
            assert_eq!(unmet.to_string(), line);
        }
    }
}
