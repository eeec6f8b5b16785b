//! Marks and words of a report, which of them it has printed, and what they mean.

use std::cell::Cell;

use crate::{CacheState, Clock, Series, Site, Snapshot, units};

/// Declares the marks: each with its text, a few words for the brief table, and a sentence. They are explained in this
/// order. Words that stand only in notes have no brief explanation.
macro_rules! marks {
    ($($(#[$doc:meta])* $mark:ident = $text:literal, $short:literal, $long:literal;)*) => {
        /// A mark or a word that a report explains if it has printed it.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Mark {
            $($(#[$doc])* $mark,)*
        }

        const ALL: &[Mark] = &[$(Mark::$mark,)*];

        impl Mark {
            /// Returns the mark as it is printed.
            pub fn text(self) -> &'static str {
                self.row()[0]
            }

            fn row(self) -> [&'static str; 3] {
                match self {
                    $(Mark::$mark => [$text, $short, $long],)*
                }
            }
        }
    };
}

marks! {
    /// The time may be longer than the timed work.
    AtMost = "≤", "upper bound",
        "upper bound: the GPU may have waited for the CPU in all samples or, for a total, in more than 5% of it, or \
         most samples contain other brackets; `sleep` usually prevents both";
    AtLeast = "≥", "lower bound", "lower bound: computed from times that are upper bounds";
    Estimate = "~", "estimate",
        "estimated from sampled calls or windows, ± its standard error; ±?, the sample cannot tell it";
    Missing = "*", "without calls in warm-up, lost or in flight",
        "without the calls that were in warm-up, lost or in flight, which notes count";
    Raw = "raw", "bias not removed",
        "calls made different numbers of launches, so the bias is removed from the total only";
    Host = "host", "wall time on the CPU", "wall time on the CPU, not GPU time, so it has no share";
    Sync = "sync", "wall time between barriers",
        "wall time between two stream barriers, launching and waiting included, so it has no share";
    Kernels = "kernels", "time that the kernels ran",
        "time per call during which its kernels ran, by CUPTI's records";
    PerCall = "×", "launches per call",
        "launches per call; those of a kernel are per recorded call, and its share is of the kernel time of the function";
    GbPerS = "GB/s", "share of peak",
        "in parentheses, the share of the memory's peak bandwidth; above 100%, caches served a part";
    Graph = "graph", "sampled replays of a graph node",
        "replays of a graph node; not every replay is sampled";
    Share = "share", "of GPU time", "of the GPU time, without what functions inside account for";
    /// The same if no tree tells what is inside.
    ShareTwice = "share", "inner functions count twice",
        "of the GPU time of all functions; nested functions count twice";
    /// The header of a column, explained where totals have work that it lacks.
    GpuPerCall = "GPU/call", "by events, on the call's own stream only",
        "by events, on the call's own stream; the total has the work of inner functions on other streams too";
    Uncertain = "?", "share that upper bounds make uncertain",
        "share that may be too large or too small, because some of the times are upper bounds, or only some of the \
         devices or processes had windows";
    /// The same without an upper bound.
    WithoutPhases = "?", "share that missing phases make uncertain",
        "share that may be too large or too small, because only some of the devices or processes had phases";
    Times = "times", "", "on a GPU, raw event time minus the device's bias, once per bracket";
    Bias = "bias", "",
        "event time of a held empty kernel minus its CUPTI time, so fed kernels read as in CUPTI and Nsight Systems";
    BiasFloor = "bias (floor)", "",
        "event time of an empty pair, so kernels read about 1 µs longer than in Nsight Systems; to correct that, run \
         `gpu-time calibrate`, or set `GPU_TIME_BIAS=cupti:TIME` to CUPTI's time of an empty kernel";
    Recorded = "recorded", "",
        "calls whose work CUPTI recorded instead of events; busy, at least one of the kernels, copies and memsets ran; \
         span, from the first start to the last end; gaps, span minus busy";
    WaitsForCpu = "waits for the CPU", "",
        "the GPU waited for the CPU, which was still enqueueing what ran next";
    Merged = "merged", "",
        "medians of recorded calls and kernels that several of the reports have are left out";
    Rates = "rates", "",
        "work per call by median time; where the work varies, total work by total time of the samples";
    Skipped = "skipped", "",
        "timing was off, the filter excluded the function, or the call could not be timed";
    InFlight = "in flight", "", "had not returned or finished when the report was made";
    Starved = "starved", "",
        "the GPU may have waited for the CPU, so the sample counts in the total only; `sleep` usually prevents that";
    AtFloor = "at the floor", "",
        "nothing ran between the events, so the sample is left out; check that the work is on the timed stream";
    Partial = "partial", "", "the L2 was flushed, but some lines may have stayed in it";
    Nested = "nested", "",
        "contains or overlaps other timed brackets, and what they add is not known; with `sleep`, it is";
    Tracked = "tracked", "",
        "contains waits and records of cudarc's event tracking; `disable_event_tracking` of the context removes them";
}

/// The marks that a report has printed, which are those that it explains: a bit for each.
#[derive(Default)]
pub struct Printed(Cell<u32>);

impl Printed {
    /// Returns the text of a mark, which the caller prints.
    pub fn print(&self, mark: Mark) -> &'static str {
        self.0.set(self.0.get() | 1 << mark as u32);
        mark.text()
    }

    /// Returns the text of a mark for a figure that has it, and nothing for others.
    pub fn mark(&self, has: bool, mark: Mark) -> &'static str {
        if has { self.print(mark) } else { "" }
    }

    /// Returns a line for each printed mark, and for each word in the notes.
    pub fn explanations(&self, snapshot: &Snapshot) -> Vec<String> {
        words(snapshot).into_iter().for_each(|(is_used, word)| _ = self.mark(is_used, word));
        let line = |[text, _, long]: [&str; 3]| format!("{text}: {long}");
        self.all(snapshot).map(|mark| line(mark.row())).collect()
    }

    /// Explains each printed mark in a few words, in one line.
    pub fn brief_explanation(&self, snapshot: &Snapshot) -> String {
        let words = self.all(snapshot).map(|mark| match mark.row() {
            [text, short, _] if mark == Mark::Estimate => {
                format!("{text}: {short}{}", estimate_error(snapshot))
            }
            [text, short, _] => format!("{text}: {short}"),
        });
        words.collect::<Vec<_>>().join(" · ")
    }

    fn all(&self, snapshot: &Snapshot) -> impl Iterator<Item = Mark> {
        let count_twice =
            snapshot.tree.is_empty() && snapshot.all_series().any(Series::is_counted_twice);
        let has_bound = snapshot.all_series().any(Series::is_total_bound);
        let printed = ALL.iter().filter(|mark| self.0.get() >> **mark as u32 & 1 == 1);
        printed.map(move |mark| match mark {
            Mark::Share if count_twice => Mark::ShareTwice,
            Mark::Uncertain if !has_bound => Mark::WithoutPhases,
            mark => *mark,
        })
    }
}

/// Returns the largest standard error of estimated totals, in words. Empty if only the work that is not annotated is
/// estimated, whose row has its error.
fn estimate_error(snapshot: &Snapshot) -> String {
    let sampled = snapshot.sites.iter().filter(|site| site.is_sampled());
    let heads = sampled.flat_map(Site::heads);
    let errors = heads.filter_map(|series| {
        let total = series.estimated_total_ns.filter(|total| *total > 0.0)?;
        Some(series.estimated_total_error_ns.map(|error| error / total))
    });
    let (known, unknown): (Vec<Option<f64>>, Vec<_>) = errors.partition(Option::is_some);
    let largest = known.into_iter().flatten().reduce(f64::max).map(units::two_digit_percent);
    let largest = largest.map(|largest| format!(", standard error up to {largest}"));
    let unknown = if unknown.is_empty() { "" } else { ", error of some unknown" };
    largest.unwrap_or_default() + unknown
}

/// Returns the words that notes and details use, each with whether they do.
fn words(snapshot: &Snapshot) -> Vec<(bool, Mark)> {
    let any = |is: fn(&Series) -> bool| snapshot.all_series().any(is);
    let any_site = |is: fn(&Site) -> bool| snapshot.sites.iter().any(is);
    let is_opened = any(|series| series.opened() > 0);
    let has_dropped =
        any(|series| series.kernel_times.as_ref().is_some_and(|times| times.has_dropped()));
    let of_samples = snapshot.all_series().flat_map(Series::without_figure);
    let mut words: Vec<_> = of_samples.map(|(count, word)| (count > 0, word)).collect();
    words.extend([
        (any(|series| series.net_ns.is_some() && series.clock == Clock::Events), Mark::Times),
        (snapshot.has_bias_from(&["cupti", "table"]), Mark::Bias),
        (snapshot.has_bias_from(&["floor"]), Mark::BiasFloor),
        (is_opened, Mark::Recorded),
        (any_site(|site| site.launch_bound == Some(true)), Mark::WaitsForCpu),
        (is_opened && has_dropped, Mark::Merged),
        (any(|series| series.bytes.is_some() || series.flops.is_some()), Mark::Rates),
        (any_site(|site| site.skipped > site.unsampled), Mark::Skipped),
        (any(|series| series.cache == CacheState::Partial), Mark::Partial),
    ]);
    words
}

impl Series {
    /// Counts the samples that are missing from the statistics, or include more than the timed work. If no sample was fed,
    /// the figures come from the starved ones.
    pub(crate) fn without_figure(&self) -> [(u64, Mark); 5] {
        [
            (self.in_flight, Mark::InFlight),
            (if self.upper_bound { 0 } else { self.starved }, Mark::Starved),
            (self.at_floor, Mark::AtFloor),
            (self.unknown_nested(), Mark::Nested),
            (self.tracked, Mark::Tracked),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detail, Device, Terminal, fixtures};

    /// Returns `true` if the table with all notes has a line about the word or mark.
    fn explains(snapshot: &Snapshot, word: Mark) -> bool {
        let table = snapshot.to_table(Terminal::default(), Detail::All);
        table.lines().any(|line| line.starts_with(&format!("  {}", word.text())))
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
            explains(&snapshot, Mark::AtMost)
        };
        assert!(!are_explained(|_| {}));
        assert!(are_explained(|series| series.upper_bound = true));
        assert!(are_explained(|series| series.nested = series.measured));
    }

    #[test]
    fn bias_is_explained_only_for_rows_by_events() {
        assert!(explains(&fixtures::everything(), Mark::Bias));
        let mut on_host = fixtures::on_host();
        let source = Some("floor".to_owned());
        on_host.devices.push(Device { event_bias_source: source, ..fixtures::gpu() });
        assert!(!explains(&on_host, Mark::Bias));
    }
}
