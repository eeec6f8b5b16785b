//! What a run of `until_stable` came to.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::{BackToBack, verdict};
use crate::cuda::Refusal;
use crate::report::Snapshot;

/// The snapshot of a run of [`until_stable`](crate::until_stable), as which it can be used, and what had
/// not settled by its end.
///
/// It has the functions that were called in the run, with their counts and figures of the run alone; the
/// extremes are known as well as the percentiles are, and there are no timelines. What it says of the
/// process and its devices is of the whole time.
///
/// Its `Display` is the table, a line for [calls back to back](Settled::back_to_back), and one for each
/// series that is [`unmet`](Settled::unmet).
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    pub(super) snapshot: Snapshot,
    pub(super) unmet: Vec<Unmet>,
    pub(super) calls: u64,
    pub(super) elapsed: Duration,
    pub(super) back_to_back: Option<BackToBack>,
}

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

impl Settled {
    /// Whether every series that the closure touched has settled. True where there was nothing to
    /// settle.
    pub fn is_settled(&self) -> bool {
        self.unmet.is_empty()
    }

    /// The series that have not settled, in the order of the report.
    pub fn unmet(&self) -> &[Unmet] {
        &self.unmet
    }

    /// How often the closure was called.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// How long it took, by the wall clock.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// What calls take back to back, if [`Settle::graph`](crate::Settle::graph) asked for it and they
    /// could be captured.
    pub fn back_to_back(&self) -> Option<&BackToBack> {
        self.back_to_back.as_ref()
    }

    /// The snapshot of the run alone.
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }
}

impl Deref for Settled {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot.fmt(f)?;
        self.back_to_back.iter().try_for_each(|back_to_back| writeln!(f, "{back_to_back}"))?;
        self.unmet.iter().try_for_each(|unmet| writeln!(f, "not settled: {unmet}"))
    }
}

impl Unmet {
    /// Of what is to settle in replays of a graph.
    pub(super) fn of_replays(calls: u32, of: Option<&BackToBack>, obstacle: Obstacle) -> Unmet {
        Unmet {
            site: format!("graph of {calls} calls"),
            series: of.map(|of| of.series.place()).unwrap_or_default(),
            samples: of.map_or(0, BackToBack::replays),
            margin: of.and_then(|of| verdict::margin(&of.series)),
            obstacle,
        }
    }

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

/// A share in percent, to two digits.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        p if p >= 9.95 => 0,
        p if p >= 0.995 => 1,
        p if p >= 0.0995 => 2,
        _ => 3,
    };
    format!("{percent:.decimals$}%")
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

    #[test]
    fn a_percentage_has_two_digits() {
        for (share, text) in [
            (0.31, "31%"),
            (0.0131, "1.3%"),
            (0.005, "0.50%"),
            (0.000_12, "0.012%"),
            (0.0, "0.000%"),
        ] {
            assert_eq!(percent(share), text);
        }
    }
}
