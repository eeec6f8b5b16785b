//! The last lines of the table, which explain its marks.

use crate::marks::{
    ESTIMATE, GB_PER_S, GPU_PER_CALL, GRAPH, HOST, KERNELS, LOWER_BOUND, PER_CALL, RAW, SHARE,
    SYNC, UNCERTAIN, UPPER_BOUND,
};
use crate::printed::Printed;
use crate::{Series, Snapshot, units};

/// Explains each printed mark in a few words. [`Detail::All`](crate::Detail::All) explains them in
/// sentences.
pub fn line(snapshot: &Snapshot, printed: &Printed) -> String {
    let estimate = estimate(snapshot);
    let is_twice = snapshot.tree.is_empty() && snapshot.all_series().any(Series::is_counted_twice);
    let is_bound = snapshot.all_series().any(Series::is_total_bound);
    let cause = if is_bound { "upper bounds make" } else { "missing windows make" };
    let uncertain = format!("share that {cause} uncertain");
    let words = [
        (UPPER_BOUND, "upper bound"),
        (LOWER_BOUND, "lower bound"),
        (ESTIMATE, &*estimate),
        (RAW, "bias not removed"),
        (HOST, "wall time on the CPU"),
        (SYNC, "wall time between barriers"),
        (KERNELS, "time that the kernels ran"),
        (PER_CALL, "launches per call"),
        (GB_PER_S, "share of peak"),
        (GRAPH, "sampled replays of a graph node"),
        (SHARE, if is_twice { "inner functions count twice" } else { "of GPU time" }),
        (GPU_PER_CALL, "by events, on the call's own stream only"),
        (UNCERTAIN, &*uncertain),
    ];
    let words = words.iter().filter(|(mark, _)| printed.has(mark));
    words.map(|(mark, meaning)| format!("{mark}: {meaning}")).collect::<Vec<_>>().join(" · ")
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

/// Returns a line on how to see the functions, rows and notes that the table omits.
pub fn more(functions: usize, rows: usize, notes: usize) -> String {
    let count = |count: usize, one: &str| {
        let end = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{} more {one}{end}", units::count(count as u64)))
    };
    let with = |parts: &[Option<String>], how: &str| {
        let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| format!("{} with {how}", parts.join(" and ")))
    };
    let parts = [
        with(
            &[count(functions, "function")],
            "`GPU_TIME_REPORT=table:PATH`, `json:PATH` or `html:PATH`",
        ),
        with(&[count(rows, "row"), count(notes, "note")], "`GPU_TIME_NOTES=all`"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
