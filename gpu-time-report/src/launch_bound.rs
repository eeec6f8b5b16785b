//! Launch-bound calls: the GPU waited during them, because the host was still enqueueing work.

use crate::units;
use crate::{KernelTimes, Series, Site, Stats};

/// The minimum share of a call's span that the GPU waits for the host in a launch-bound call.
const MIN_WAITED: f64 = 0.05;

/// Returns `true` if calls in which the GPU waited this long within their span are launch-bound.
pub(crate) fn is_launch_bound(waited_ns: f64, span_ns: f64) -> bool {
    waited_ns > 0.0 && waited_ns >= MIN_WAITED * span_ns
}

/// Returns `false` if the medians of the function's recorded calls say that they are not launch-bound.
/// One slow call, such as the first, can make their means say the opposite.
pub(crate) fn may_be_launch_bound(site: &Site) -> bool {
    let known = site.series.iter().filter_map(|series| of_medians(series.kernel_times.as_ref()?));
    known.reduce(|one, other| one || other) != Some(false)
}

/// Returns `true` if the median gaps are long enough for calls to be launch-bound, or `None` if they
/// are not known.
fn of_medians(times: &KernelTimes) -> Option<bool> {
    let [gaps, span] = [times.gaps_ns, times.span_ns].map(median);
    Some(is_launch_bound(gaps?, span?))
}

/// Describes the medians of a series, unless the gaps are too short for it to be launch-bound.
pub(crate) fn sides_of_series(series: &Series) -> Option<String> {
    let kernels = series.kernel_times.as_ref()?.kernels_per_call?;
    Some(sides_of_medians(series)? + &of_kernels(kernels))
}

/// Describes the medians of a series without the number of kernels.
fn sides_of_medians(series: &Series) -> Option<String> {
    let times = series.kernel_times.as_ref()?;
    let [busy, span, host] = [times.busy_ns, times.span_ns, series.host_ns].map(median);
    let sides = sides([busy?, span?, host?]);
    of_medians(times)?.then_some(sides)
}

/// Returns the text for a launch-bound series in its row, which is empty if its medians are
/// unknown. `None` if the series is not launch-bound. The number of kernels stands beside it.
#[cfg(feature = "html")]
pub(crate) fn of_row(site: &Site, series: &Series) -> Option<String> {
    let times = series.kernel_times.as_ref().filter(|times| times.opened > 0)?;
    let is_bound = site.launch_bound == Some(true) && of_medians(times) != Some(false);
    is_bound.then(|| sides_of_medians(series).unwrap_or_default())
}

pub(crate) fn median(stats: Option<Stats>) -> Option<f64> {
    stats.map(|stats| stats.median)
}

/// Describes how long the GPU was busy with a launch-bound call, and how long the host took for it,
/// with whatever else it did: the time inside the launches is not known.
pub(crate) fn both_sides(times_ns: [f64; 3], kernels: f64) -> String {
    sides(times_ns) + &of_kernels(kernels)
}

fn sides([busy_ns, span_ns, host_ns]: [f64; 3]) -> String {
    format!(
        "GPU busy {} of {}; the host took {}",
        units::Unit::of(span_ns).number(busy_ns),
        units::time(span_ns),
        units::time(host_ns),
    )
}

/// Copies and memsets are not counted.
fn of_kernels(count: f64) -> String {
    if count < 0.05 { String::new() } else { format!(" for {}", kernels(count)) }
}

/// Describes a number of kernels per call.
pub(crate) fn kernels(count: f64) -> String {
    let is_whole = (count - count.round()).abs() < 0.05;
    let decimals = if 0.0 < count && count < 0.95 { 2 } else { usize::from(!is_whole) };
    let count = units::grouped(&format!("{count:.decimals$}"));
    format!("{count} {}", if count == "1" { "kernel" } else { "kernels" })
}

#[cfg(test)]
mod tests {
    use super::{both_sides, kernels};

    #[test]
    fn both_sides_count_kernels() {
        let sides = |kernels| both_sides([4_290.0, 24_040.0, 40_020.0], kernels);
        assert_eq!(sides(1.0), "GPU busy 4.290 of 24.04 µs; the host took 40.02 µs for 1 kernel");
        assert_eq!(sides(0.0), "GPU busy 4.290 of 24.04 µs; the host took 40.02 µs");
        assert!(sides(87.02).ends_with(" 87 kernels") && sides(2.5).ends_with(" 2.5 kernels"));
        assert_eq!([0.0, 0.04].map(kernels), ["0 kernels", "0.04 kernels"]);
    }
}
