//! The result of `until_stable`.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::settle::unmet::Unmet;
use gpu_time_report::units::percent;
use gpu_time_report::{self as report, Snapshot, Stats, units};

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

/// What calls of the closure take back to back, with nothing between the kernels but what a graph
/// leaves there.
///
/// A replay is timed from before its graph to after it, with the stream held until both have been
/// enqueued. So its span has what a pair of events adds, once for all of the calls, and beginning a
/// graph costs the GPU a microsecond or so; nothing of that is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct BackToBack {
    pub(super) calls: u32,
    pub(super) series: report::Series,
}

impl BackToBack {
    /// How many calls a replay is of.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// How many replays the figures are over.
    pub fn replays(&self) -> u64 {
        if self.upper_bound() { self.series.starved() } else { self.series.fed() }
    }

    /// The median time of a replay, divided by its calls.
    pub fn per_call_ns(&self) -> f64 {
        self.span_ns().map_or(f64::NAN, Stats::median) / f64::from(self.calls)
    }

    /// The interval that holds this median with 95 % confidence; `None` with fewer than 6 replays.
    pub fn ci95_ns(&self) -> Option<[f64; 2]> {
        Some(self.series.ci95_ns()?.map(|ns| ns / f64::from(self.calls)))
    }

    /// What whole replays took; `None` without any.
    pub fn span_ns(&self) -> Option<&Stats> {
        self.series.raw_ns()
    }

    /// Whether the GPU may have waited for the host in every replay, so that the times are upper
    /// bounds: that is so where streams cannot be held.
    pub fn upper_bound(&self) -> bool {
        self.series.upper_bound()
    }
}

/// One line.
impl fmt::Display for BackToBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = units::time(self.per_call_ns());
        write!(f, "back to back: {}{time} a call", if self.upper_bound() { "≤ " } else { "" })?;
        if let Some([low, high]) = self.ci95_ns() {
            write!(f, " ±{}", percent((high - low) / 2.0 / self.per_call_ns()))?;
        }
        write!(f, ", {} replays of {} calls", self.replays(), self.calls)
    }
}
