//! Explanations of the words and marks used in a report.

use crate::marks::{ESTIMATE, Mark, Printed, SHARE, UNCERTAIN};
use crate::{CacheState, Clock, Lost, Series, Snapshot, units};

/// The lines so far, and the report that they explain.
struct Legend<'a> {
    snapshot: &'a Snapshot,
    lines: Vec<String>,
}

/// Returns a line for each printed mark, and for each word in the notes.
pub fn lines(snapshot: &Snapshot, printed: &Printed) -> Vec<String> {
    let of_mark = |mark: &Mark| {
        let long = match mark.mark {
            SHARE if count_twice(snapshot) => {
                "of the GPU time of all functions; nested functions count twice"
            }
            _ => mark.long,
        };
        format!("{}: {long}", mark.mark)
    };
    let mut legend = Legend { snapshot, lines: printed.explained().map(of_mark).collect() };
    legend.times();
    legend.opened_calls();
    legend.rates();
    legend.calls();
    legend.samples();
    legend.losses();
    legend.lines
}

/// Explains each printed mark in a few words.
pub fn line(snapshot: &Snapshot, printed: &Printed) -> String {
    let short = |mark: &Mark| match mark.mark {
        ESTIMATE => estimate(snapshot),
        SHARE if count_twice(snapshot) => "inner functions count twice".to_owned(),
        UNCERTAIN if snapshot.all_series().any(Series::is_total_bound) => {
            "share that upper bounds make uncertain".to_owned()
        }
        UNCERTAIN => "share that missing phases make uncertain".to_owned(),
        _ => mark.short.to_owned(),
    };
    let words = printed.explained().map(|mark| format!("{}: {}", mark.mark, short(mark)));
    words.collect::<Vec<_>>().join(" · ")
}

/// Returns `true` if the shares of functions around others include theirs.
fn count_twice(snapshot: &Snapshot) -> bool {
    snapshot.tree.is_empty() && snapshot.all_series().any(Series::is_counted_twice)
}

/// Explains estimated totals, with their largest standard error.
fn estimate(snapshot: &Snapshot) -> String {
    let sampled = snapshot.sites.iter().filter(|site| site.is_sampled());
    let heads = sampled.flat_map(|site| &site.series).filter(|series| series.launch.is_none());
    let totals = heads.filter_map(|series| {
        let total = series.estimated_total_ns.filter(|total| *total > 0.0)?;
        Some(series.estimated_total_error_ns.map(|error| error / total))
    });
    let (known, unknown): (Vec<Option<f64>>, Vec<_>) = totals.partition(Option::is_some);
    let largest = known.into_iter().flatten().reduce(f64::max);
    let largest = largest
        .map(|largest| format!("standard error up to {}", units::two_digit_percent(largest)));
    let unknown = (!unknown.is_empty()).then(|| "error of some unknown".to_owned());
    // Empty if only the work that is not annotated is estimated, whose row has its error.
    let errors = [largest, unknown].into_iter().flatten();
    std::iter::once("estimate".to_owned()).chain(errors).collect::<Vec<_>>().join(", ")
}

impl Legend<'_> {
    fn any(&self, is: impl Fn(&Series) -> bool) -> bool {
        self.snapshot.all_series().any(is)
    }

    fn explain(&mut self, is_used: bool, word: &str, meaning: &str) {
        self.lines.extend(is_used.then(|| format!("{word}: {meaning}")));
    }

    fn times(&mut self) {
        self.explain(
            self.any(|s| s.net_ns.is_some() && s.clock == Clock::Events),
            "times",
            "on a GPU, raw event time minus the device's bias, once per bracket",
        );
        let is_known = self.snapshot.has_bias_from(&["cupti", "table"]);
        let is_floor = self.snapshot.has_bias_from(&["floor"]);
        self.explain(
            is_known,
            "bias",
            "event time of a held empty kernel minus its CUPTI time, so fed kernels read as in CUPTI and \
             Nsight Systems",
        );
        self.explain(
            is_floor,
            "bias (floor)",
            "event time of an empty pair, so kernels read about 1 µs longer than in Nsight Systems; to \
             correct that, run `gpu-time calibrate`, or set `GPU_TIME_BIAS=cupti:TIME` to CUPTI's time \
             of an empty kernel",
        );
    }

    fn opened_calls(&mut self) {
        let is_opened = self.any(|s| s.opened() > 0);
        self.explain(
            is_opened,
            "recorded",
            "calls whose work CUPTI recorded instead of events; busy, at least one of the kernels, copies \
             and memsets ran; span, from the first start to the last end; gaps, span minus busy",
        );
        self.explain(
            self.snapshot.sites.iter().any(|site| site.launch_bound == Some(true)),
            "launch-bound",
            "the GPU waited for the CPU, which was still enqueueing what ran next",
        );
        self.explain(
            is_opened
                && self.any(|s| s.kernel_times.as_ref().is_some_and(|times| times.has_dropped())),
            "merged",
            "medians of recorded calls and kernels that several of the reports have are left out",
        );
    }

    fn rates(&mut self) {
        self.explain(
            self.any(|s| s.bytes.is_some() || s.flops.is_some()),
            "rates",
            "work per call by median time; where the work varies, total work by total time of the samples",
        );
    }

    fn calls(&mut self) {
        let sites = &self.snapshot.sites;
        let is_skipped = sites.iter().any(|site| site.skipped > site.unsampled);
        self.explain(
            is_skipped,
            "skipped",
            "timing was off, the filter excluded the function, or the call could not be timed",
        );
    }

    fn samples(&mut self) {
        self.explain(
            self.any(|s| s.in_flight > 0),
            "in flight",
            "had not returned or finished when the report was made",
        );
        self.explain(
            self.any(|s| s.starved > 0 && !s.upper_bound),
            "starved",
            "the GPU may have waited for the CPU, so the sample counts in the total only; `sleep` \
             usually prevents that",
        );
        self.explain(
            self.any(|s| s.at_floor > 0),
            "at the floor",
            "nothing ran between the events, so the sample is left out; check that the work is on the \
             timed stream",
        );
        self.explain(
            self.any(|s| s.cache == CacheState::Partial),
            "partial",
            "the L2 was flushed, but some lines may have stayed in it",
        );
        self.explain(
            self.any(|s| s.unknown_nested() > 0),
            "nested",
            "contains or overlaps other timed brackets, and what they add is not known; with `sleep`, it is",
        );
        self.explain(
            self.any(|s| s.tracked > 0),
            "tracked",
            "contains waits and records of cudarc's event tracking; `disable_event_tracking` of the \
             context removes them",
        );
    }

    fn losses(&mut self) {
        for reason in Lost::ALL {
            let is_used = self.any(|series| series.lost.of(reason) > 0);
            if let Some(details) = reason.details() {
                self.explain(is_used, reason.cause(), details);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::UPPER_BOUND;
    use crate::{Detail, Device, Terminal, fixtures};

    /// Returns `true` if the table with all notes has a line about the word or mark.
    fn explains(snapshot: &Snapshot, word: &str) -> bool {
        let table = snapshot.to_table(Terminal::default(), Detail::All);
        table.lines().any(|line| line.starts_with(&format!("  {word}")))
    }

    /// The columns mark both kinds.
    #[test]
    fn bounds_are_explained_for_starved_and_for_nested_samples() {
        let are_explained = |set: fn(&mut Series)| {
            let mut snapshot = fixtures::everything();
            for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
                (series.upper_bound, series.nested, series.inner_brackets) = (false, 0, None);
                series.starved = 0;
                set(series);
            }
            explains(&snapshot, UPPER_BOUND)
        };
        assert!(!are_explained(|_| {}));
        assert!(are_explained(|series| series.upper_bound = true));
        assert!(are_explained(|series| series.nested = series.measured));
    }

    #[test]
    fn bias_is_explained_only_for_rows_by_events() {
        assert!(explains(&fixtures::everything(), "bias"));
        let mut on_host = fixtures::on_host();
        let source = Some("floor".to_owned());
        on_host.devices.push(Device { event_bias_source: source, ..fixtures::gpu() });
        assert!(!explains(&on_host, "bias"));
    }
}
