//! Launch-bound calls: the GPU waited during them, because the host was still enqueueing work.

use crate::units;
use crate::{Kernel, KernelTimes, Series, Site, Stats};

/// The minimum share of a call's span that the GPU waits for the host in a launch-bound call.
const MIN_WAITED: f64 = 0.05;
/// The share of copies in the work of a call above which it is mostly copies.
const MOST: f64 = 0.5;
/// The number of kernels per call from which on fewer of them help.
const SEVERAL: f64 = 2.0;

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
    let enqueued = enqueued(series.kernel_times.as_ref()?);
    Some(format!("{} on {enqueued}", sides_of_medians(series)?))
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
    let counted = of_kernels(kernels).map(|counted| format!(" on {counted}"));
    sides(times_ns) + &counted.unwrap_or_default()
}

fn sides([busy_ns, span_ns, host_ns]: [f64; 3]) -> String {
    format!(
        "the GPU works {} of {}; the host spends {}",
        units::Unit::of(span_ns).number(busy_ns),
        units::time(span_ns),
        units::time(host_ns),
    )
}

/// Returns what helps against the waits of calls with so many kernels, as their records show if they are those of a series.
pub(crate) fn remedy(series: Option<&Series>, kernels_per_call: f64) -> &'static str {
    let kernels = series.map_or(&[][..], Series::kernels);
    let copies: f64 =
        kernels.iter().filter(|of| of.is_copy() || of.is_memset()).map(|of| of.share).sum();
    if copies > MOST {
        "Copies from pinned memory, on another stream, would not hold it up"
    } else if kernels_per_call >= SEVERAL {
        "Fused kernels or a graph would shorten the waits"
    } else {
        "Less work of the host in the call would shorten the waits"
    }
}

/// Describes what recorded calls enqueue, per call.
pub(crate) fn enqueued(times: &KernelTimes) -> String {
    let number = |is: fn(&Kernel) -> bool| -> f64 {
        times.kernels.iter().filter(|kernel| is(kernel)).map(|kernel| kernel.per_call).sum()
    };
    let parts = [
        times.kernels_per_call.and_then(of_kernels),
        counted(number(Kernel::is_copy), "copy", "copies"),
        counted(number(Kernel::is_memset), "memset", "memsets"),
    ];
    units::joined(&parts, ", ").unwrap_or_else(|| "no GPU work".to_owned())
}

fn of_kernels(count: f64) -> Option<String> {
    counted(count, "kernel", "kernels")
}

/// Describes a number of things per call. `None` if there is next to none.
fn counted(count: f64, one: &str, several: &str) -> Option<String> {
    let is_whole = (count - count.round()).abs() < 0.05;
    let decimals = if count < 0.95 { 2 } else { usize::from(!is_whole) };
    let number = units::grouped(&format!("{count:.decimals$}"));
    (count >= 0.05).then(|| format!("{number} {}", if number == "1" { one } else { several }))
}

#[cfg(test)]
mod tests {
    use super::{both_sides, enqueued};
    use crate::{Kernel, KernelTimes};

    #[test]
    fn both_sides_count_kernels() {
        let sides = |kernels| both_sides([4_290.0, 24_040.0, 40_020.0], kernels);
        let without = "the GPU works 4.290 of 24.04 µs; the host spends 40.02 µs";
        assert_eq!(sides(0.0), without);
        assert_eq!(sides(1.0), format!("{without} on 1 kernel"));
        assert!(sides(87.02).ends_with(" 87 kernels") && sides(2.5).ends_with(" 2.5 kernels"));
    }

    #[test]
    fn copies_are_no_kernels() {
        let enqueued = |kernels_per_call, works: &[(&str, f64)]| {
            let kernel = |&(name, per_call): &(&str, f64)| Kernel {
                name: name.to_owned(),
                per_call,
                ..Kernel::default()
            };
            let (kernels, kernels_per_call) =
                (works.iter().map(kernel).collect(), Some(kernels_per_call));
            enqueued(&KernelTimes { kernels, kernels_per_call, ..KernelTimes::default() })
        };
        assert_eq!(enqueued(0.0, &[("[copy HtoD]", 1.0)]), "1 copy");
        let all = [("saxpy", 24.0), ("[copy HtoD]", 6.0), ("[memset]", 1.0), ("[copy DtoH]", 2.0)];
        assert_eq!(enqueued(24.0, &all), "24 kernels, 8 copies, 1 memset");
        assert_eq!(enqueued(0.0, &[]), "no GPU work");
        assert_eq!(enqueued(0.25, &[]), "0.25 kernels");
    }
}
