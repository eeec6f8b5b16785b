//! The result of `until_stable`.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use crate::collect;
use crate::settle::unmet::Unmet;
use gpu_time_report::units::two_digit_percent;
use gpu_time_report::{self as report, Snapshot, Stats, units};

/// The snapshot of an [`until_stable`](crate::until_stable) run, with the series that had not
/// settled by the end. Dereferences to the [`Snapshot`].
///
/// The snapshot contains the functions called during the run, with counts and figures for the run
/// alone. Extremes are only as precise as percentiles, and there are no timelines. The data on the
/// process and its devices covers the whole lifetime of the process.
///
/// `Display` prints the table, a line for [calls back to back](Settled::back_to_back), and a line
/// for each [`unmet`](Settled::unmet) series.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settled {
    /// The snapshot of the run.
    pub snapshot: Snapshot,
    /// The series that have not settled, in report order.
    pub unmet: Vec<Unmet>,
    /// The number of times the closure was called.
    pub calls: u64,
    /// The wall-clock time of the run.
    pub elapsed: Duration,
    /// The time for calls back to back, if [`Settle::graph`](crate::Settle::graph) was set and the
    /// calls could be captured.
    pub back_to_back: Option<BackToBack>,
}

impl Settled {
    /// Returns the result in a forked child, which knows only its calls. Takes no lock.
    pub(super) fn of_child(started: Instant, calls: u64) -> Settled {
        Settled {
            snapshot: collect::snapshot_in_child(),
            unmet: Vec::new(),
            calls,
            elapsed: started.elapsed(),
            back_to_back: None,
        }
    }

    /// Returns `true` if every series recorded by the closure has settled, or if there were none.
    pub fn is_settled(&self) -> bool {
        self.unmet.is_empty()
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

/// The time for calls back to back, from replays of a graph, with no host work between the kernels.
///
/// A replay is timed from immediately before its graph to immediately after it, with the stream
/// held until both events are enqueued. The span includes the bias of one event pair for all calls,
/// and about a microsecond that the GPU takes to start a graph. Neither is subtracted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BackToBack {
    /// The number of calls in a replay.
    pub calls: u32,
    pub(super) series: report::Series,
}

impl BackToBack {
    /// Returns the number of replays on which the figures are based.
    pub fn replays(&self) -> u64 {
        if self.upper_bound() { self.series.starved } else { self.series.fed }
    }

    /// Returns the median replay time divided by the number of calls in a replay.
    pub fn per_call_ns(&self) -> f64 {
        self.span_ns().map_or(f64::NAN, |stats| stats.median) / f64::from(self.calls)
    }

    /// Returns the 95 % confidence interval of [`per_call_ns`](Self::per_call_ns), or `None` with
    /// fewer than 20 replays.
    pub fn ci95_ns(&self) -> Option<[f64; 2]> {
        Some(self.series.ci95_ns?.map(|ns| ns / f64::from(self.calls)))
    }

    /// Returns statistics for whole replays, or `None` if there are none.
    pub fn span_ns(&self) -> Option<&Stats> {
        self.series.raw_ns.as_ref()
    }

    /// Returns `true` if the times are upper bounds, because streams cannot be held on this machine
    /// and the GPU may have waited for the host in every replay.
    pub fn upper_bound(&self) -> bool {
        self.series.upper_bound
    }
}

/// Formats the time per call on one line.
impl fmt::Display for BackToBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = units::time(self.per_call_ns());
        write!(f, "back to back: {}{time} a call", if self.upper_bound() { "≤ " } else { "" })?;
        if let Some([low, high]) = self.ci95_ns() {
            write!(f, " ±{}", two_digit_percent((high - low) / 2.0 / self.per_call_ns()))?;
        }
        write!(f, ", {} replays of {} calls", self.replays(), self.calls)
    }
}
