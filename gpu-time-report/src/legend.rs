//! Explanations of the words and marks used in a report, one line each.

use crate::marks::{
    ESTIMATE, GB_PER_S, GPU_PER_CALL, GRAPH, HOST, KERNELS, LOWER_BOUND, PER_CALL, RAW, SHARE,
    SYNC, UNCERTAIN, UPPER_BOUND,
};
use crate::printed::Printed;
use crate::{CacheState, Clock, Lost, Series, Snapshot};

/// The lines so far, and the report that they explain.
struct Legend<'a> {
    snapshot: &'a Snapshot,
    printed: &'a Printed,
    lines: Vec<String>,
}

/// Returns the lines, which are indented. Marks are explained if they were printed.
pub fn lines(snapshot: &Snapshot, printed: &Printed) -> Vec<String> {
    let mut legend = Legend { snapshot, printed, lines: Vec::new() };
    legend.times();
    legend.clocks();
    legend.opened_calls();
    legend.rates();
    legend.shares();
    legend.calls();
    legend.samples();
    legend.losses();
    legend.lines
}

impl Legend<'_> {
    fn any(&self, is: impl Fn(&Series) -> bool) -> bool {
        self.snapshot.all_series().any(is)
    }

    fn explain(&mut self, is_used: bool, word: &str, meaning: &str) {
        self.lines.extend(is_used.then(|| format!("  {word}: {meaning}")));
    }

    fn explain_mark(&mut self, mark: &str, meaning: &str) {
        self.explain(self.printed.has(mark), mark, meaning);
    }

    fn times(&mut self) {
        self.explain_mark(
            UPPER_BOUND,
            "upper bound: the GPU may have waited for the CPU in all samples or, for a total, in more than 5% of \
             it, or most samples contain other brackets; `sleep` usually prevents both",
        );
        self.explain(
            self.any(|s| s.net_ns.is_some() && s.clock == Clock::Events),
            "times",
            "on a GPU, raw event time minus the device's bias, once per bracket",
        );
        // A program without rows timed by events needs no bias.
        let has_events = self.any(|s| s.clock == Clock::Events);
        let any_bias = |sources: &[&str]| {
            let mut known =
                self.snapshot.devices.iter().filter_map(|d| d.event_bias_source.as_deref());
            has_events && known.any(|source| sources.contains(&source))
        };
        let (is_known, is_floor) = (any_bias(&["cupti", "table"]), any_bias(&["floor"]));
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
        self.explain(
            self.printed.has(GRAPH),
            "in graphs",
            "replays of a graph node; not every replay is sampled",
        );
        self.explain_mark(
            RAW,
            "calls made different numbers of launches, so the bias is removed from the total only",
        );
    }

    fn clocks(&mut self) {
        self.explain_mark(HOST, "wall time on the CPU, not GPU time, so it has no share");
        self.explain_mark(
            SYNC,
            "wall time between two stream barriers, launching and waiting included, so it has no share",
        );
        self.explain_mark(
            KERNELS,
            "time per call during which its kernels ran, by CUPTI's records of opened calls",
        );
    }

    fn opened_calls(&mut self) {
        let is_opened = self.any(|s| s.opened() > 0);
        self.explain(
            is_opened,
            "opened",
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
            "medians of opened calls and kernels that several of the reports have are left out",
        );
        self.explain(
            is_opened && self.printed.has(PER_CALL),
            PER_CALL,
            "launches of the kernel per opened call; its share is of the kernel time of the function",
        );
    }

    fn rates(&mut self) {
        self.explain(
            self.any(|s| s.bytes.is_some() || s.flops.is_some()),
            "rates",
            "work per call by median time; where the work varies, total work by total time of the samples",
        );
        self.explain_mark(
            GB_PER_S,
            "in parentheses, the share of the memory's peak bandwidth; above 100%, caches served a part",
        );
        self.explain_mark(LOWER_BOUND, "lower bound: computed from times that are upper bounds");
    }

    fn shares(&mut self) {
        self.explain_mark(
            GPU_PER_CALL,
            "by events, on the call's own stream; the total has the work of inner functions on other streams too",
        );
        let is_twice = self.snapshot.tree.is_empty() && self.any(Series::is_counted_twice);
        self.explain_mark(
            SHARE,
            if is_twice {
                "of the GPU time of all functions; nested functions count twice"
            } else {
                "of the GPU time, without what functions inside account for"
            },
        );
        self.explain_mark(
            UNCERTAIN,
            "share that may be too large or too small, because some of the times are upper bounds, or only some \
             of the devices or processes had windows",
        );
    }

    fn calls(&mut self) {
        let sites = &self.snapshot.sites;
        let is_skipped = sites.iter().any(|site| site.skipped > site.unsampled);
        self.explain_mark(
            ESTIMATE,
            "estimated from sampled calls or windows, ± its standard error; ±?, the sample cannot tell it",
        );
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
