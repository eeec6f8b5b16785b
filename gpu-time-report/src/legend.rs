//! Explanations of the words and marks used in a report.

use crate::marks::{ESTIMATE, Mark, Printed, SHARE, UNCERTAIN};
use crate::{CacheState, Clock, Lost, Series, Snapshot, units};

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
    let used = words(snapshot).into_iter().filter(|(is_used, ..)| *is_used);
    let used = used.map(|(_, word, meaning)| format!("{word}: {meaning}"));
    let lost = Lost::ALL.into_iter().filter_map(|reason| {
        let is_used = snapshot.all_series().any(|series| series.lost.of(reason) > 0);
        Some(format!("{}: {}", reason.cause(), reason.details().filter(|_| is_used)?))
    });
    printed.explained().map(of_mark).chain(used).chain(lost).collect()
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

/// Returns the words in the notes: whether the report uses each, and its meaning.
fn words(snapshot: &Snapshot) -> [(bool, &'static str, &'static str); 14] {
    let any = |is: fn(&Series) -> bool| snapshot.all_series().any(is);
    let is_opened = any(|s| s.opened() > 0);
    [
        (
            any(|s| s.net_ns.is_some() && s.clock == Clock::Events),
            "times",
            "on a GPU, raw event time minus the device's bias, once per bracket",
        ),
        (
            snapshot.has_bias_from(&["cupti", "table"]),
            "bias",
            "event time of a held empty kernel minus its CUPTI time, so fed kernels read as in CUPTI and \
             Nsight Systems",
        ),
        (
            snapshot.has_bias_from(&["floor"]),
            "bias (floor)",
            "event time of an empty pair, so kernels read about 1 µs longer than in Nsight Systems; to \
             correct that, run `gpu-time calibrate`, or set `GPU_TIME_BIAS=cupti:TIME` to CUPTI's time \
             of an empty kernel",
        ),
        (
            is_opened,
            "recorded",
            "calls whose work CUPTI recorded instead of events; busy, at least one of the kernels, copies \
             and memsets ran; span, from the first start to the last end; gaps, span minus busy",
        ),
        (
            snapshot.sites.iter().any(|site| site.launch_bound == Some(true)),
            "waits for the CPU",
            "the GPU waited for the CPU, which was still enqueueing what ran next",
        ),
        (
            is_opened && any(|s| s.kernel_times.as_ref().is_some_and(|times| times.has_dropped())),
            "merged",
            "medians of recorded calls and kernels that several of the reports have are left out",
        ),
        (
            any(|s| s.bytes.is_some() || s.flops.is_some()),
            "rates",
            "work per call by median time; where the work varies, total work by total time of the samples",
        ),
        (
            snapshot.sites.iter().any(|site| site.skipped > site.unsampled),
            "skipped",
            "timing was off, the filter excluded the function, or the call could not be timed",
        ),
        (
            any(|s| s.in_flight > 0),
            "in flight",
            "had not returned or finished when the report was made",
        ),
        (
            any(|s| s.starved > 0 && !s.upper_bound),
            "starved",
            "the GPU may have waited for the CPU, so the sample counts in the total only; `sleep` \
             usually prevents that",
        ),
        (
            any(|s| s.at_floor > 0),
            "at the floor",
            "nothing ran between the events, so the sample is left out; check that the work is on the \
             timed stream",
        ),
        (
            any(|s| s.cache == CacheState::Partial),
            "partial",
            "the L2 was flushed, but some lines may have stayed in it",
        ),
        (
            any(|s| s.unknown_nested() > 0),
            "nested",
            "contains or overlaps other timed brackets, and what they add is not known; with `sleep`, it is",
        ),
        (
            any(|s| s.tracked > 0),
            "tracked",
            "contains waits and records of cudarc's event tracking; `disable_event_tracking` of the \
             context removes them",
        ),
    ]
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
