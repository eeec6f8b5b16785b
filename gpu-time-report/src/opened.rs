//! Sentences about recorded calls, shown below the rows of their functions and in warnings.

use crate::figure::Figure;
use crate::kernel_names;
use crate::largest::sort_by_largest;
use crate::launch_bound::{enqueued, median, sides_of_series};
use crate::units::{self, share, time};
use crate::{
    Clock, Device, Elsewhere, ElsewhereReason, KernelTimes, Series, Site, Snapshot, Stats,
};

/// The number of kernels that a warning names.
const NAMED: usize = 3;

/// The minimum number of samples on each side for a warning about different medians.
const FEWEST: u64 = 5;

/// Returns the median time of a function's only kernel, by CUPTI and by events, each with twice its standard error because
/// of the chance of sampling. `None` unless the calls launch exactly one kernel and the times by events are net times of fed
/// samples. Other times are not expected to equal CUPTI's.
///
/// CUPTI and events measure calls of the same run, so any run that records calls verifies the bias of events.
fn by_both(series: &Series) -> Option<[Figure; 2]> {
    let times = series.kernel_times.as_ref()?;
    let [kernel] = &*times.kernels else { return None };
    let is_single = kernel.count == times.opened && times.elsewhere.is_empty();
    let launches = series.launches.map_or(1, |launches| launches.max);
    let claims = series.clock == Clock::Events && series.fed > 0 && !series.graph;
    if !(is_single && !kernel.is_copy() && !kernel.is_memset() && claims && launches == 1) {
        return None;
    }
    let (by_cupti, by_events) = (kernel.time_ns?, series.net_ns?);
    let events_error_ns = match series.ci95_ns {
        Some([low, high]) => (high - low) / 2.0,
        None => median_error_ns(by_events, series.fed),
    };
    let kernel_error_ns = median_error_ns(by_cupti, kernel.count);
    Some([
        Figure::estimate(by_cupti.median, Some(kernel_error_ns)),
        Figure::estimate(by_events.median, Some(events_error_ns)),
    ])
}

/// Returns a warning if the medians differ by more than the stated error of event times and chance explain. That is the error
/// of the bias, plus one clock step.
fn contradiction(series: &Series, device: &Device) -> Option<String> {
    let [kernel, events] = by_both(series)?;
    let error_ns = device.event_bias_error_ns? + device.event_step_ns.unwrap_or_default();
    let chance_ns = (kernel + events).error?;
    let differs = (events.value - kernel.value).abs() > error_ns + chance_ns;
    let is_longer = events.value > kernel.value;
    let cause = if is_longer { ": it may have waited for work on other streams" } else { "" };
    let has_enough = series.opened().min(series.fed) >= FEWEST;
    (differs && has_enough).then(|| {
        format!(
            "the kernel takes {} by CUPTI and {} by events, which differ by more than the error of times \
             by events, ±{}, and chance, ±{}, allow{cause}",
            time(kernel.value),
            time(events.value),
            time(error_ns),
            time(chance_ns)
        )
    })
}

/// Returns twice the standard error of the median of this many times, if they are normally distributed.
fn median_error_ns(times: Stats, count: u64) -> f64 {
    // The distance of these percentiles is 3.29 standard deviations, and the standard error of the median is 1.25
    // times that of the mean.
    let stddev = (times.p95 - times.p5) / 3.29;
    2.0 * 1.2533 * stddev / (count.max(1) as f64).sqrt()
}

/// Returns a line about the recorded calls of a series, with medians per call. The busy time is left
/// out if the series' own row shows it.
pub fn line(site: &Site, series: &Series) -> Option<String> {
    let times = series.kernel_times.as_ref().filter(|times| times.opened > 0)?;
    let own = self_busy_ns(times).map(|ns| format!("self {}", time(ns)));
    let by_both = by_both(series).map(|[kernel, events]| {
        format!("{} by CUPTI, {} by events", time(kernel.value), time(events.value))
    });
    let mut parts = Vec::new();
    let is_bound = site.launch_bound == Some(true);
    if let Some(sides) = sides_of_series(series).filter(|_| is_bound) {
        parts.push(format!("waits for the CPU ({sides})"));
        parts.extend(by_both);
        parts.extend(own);
    } else {
        parts.push(enqueued(times));
        if let Some(by_both) = by_both {
            parts.push(by_both);
        } else {
            let busy = median(times.busy_ns).filter(|_| series.clock != Clock::Kernels);
            parts.extend(busy.map(|ns| format!("busy {}", time(ns))));
            parts.extend(own);
            parts.extend(median(times.span_ns).map(|ns| format!("in {}{}", time(ns), idle(times))));
        }
        parts.extend(median(series.host_ns).map(|ns| format!("host {}", time(ns))));
    }
    let streams = times.streams.filter(|streams| *streams > 1);
    parts.extend(streams.map(|streams| format!("{streams} streams")));
    let opened = match series.clock {
        Clock::Kernels => "per call".to_owned(),
        _ => format!("{} recorded", units::count(times.opened)),
    };
    Some(format!("{opened}: {}", parts.join(", ")))
}

/// Returns a short form of [`line`] for the page.
#[cfg(feature = "html")]
pub fn label(series: &Series) -> Option<String> {
    let times = series.kernel_times.as_ref().filter(|times| times.opened > 0)?;
    Some(format!("{} recorded, per call: {}", units::count(times.opened), enqueued(times)))
}

/// Returns the median busy time that no inner function accounts for, if inner functions had any.
fn self_busy_ns(times: &KernelTimes) -> Option<f64> {
    let (busy, own) = times.busy_ns.zip(times.self_busy_ns)?;
    (own.sum < busy.sum).then_some(own.median)
}

/// Returns the share of the span during which the GPU did not work on the call.
fn idle(times: &KernelTimes) -> String {
    match times.gaps_ns.zip(times.span_ns) {
        Some((gaps, span)) if gaps.median > 0.0 && span.median > 0.0 => {
            format!(" ({} idle)", share(gaps.median, span.median))
        }
        _ => String::new(),
    }
}

/// Returns reasons to doubt the figures of a site's recorded calls or its event times, each paired
/// with the series that it is about.
pub fn warnings(snapshot: &Snapshot, site: &Site) -> Vec<(String, String)> {
    let warnings = |series: &Series| {
        let Some(times) = &series.kernel_times else { return Vec::new() };
        let elsewhere = ElsewhereReason::ALL.into_iter().filter_map(|why| elsewhere(times, why));
        let mut warnings: Vec<String> = elsewhere.collect();
        let device = snapshot.device(series);
        warnings.extend(device.and_then(|device| contradiction(series, device)));
        if times.zero_times > 0 {
            warnings.push(format!(
                "CUPTI gave {} records without times, which are in no figure",
                units::count(times.zero_times)
            ));
        }
        let place = series.place();
        warnings.into_iter().map(|warning| (place.clone(), warning)).collect::<Vec<_>>()
    };
    site.series.iter().flat_map(warnings).collect()
}

/// Describes the work that events did not bracket for this reason.
fn elsewhere(times: &KernelTimes, why: ElsewhereReason) -> Option<String> {
    let mut found: Vec<_> = times.elsewhere.iter().filter(|work| work.why == why).collect();
    sort_by_largest(&mut found, |work| work.total_ns);
    let total_ns = found.iter().fold(0.0, |sum, work| sum + work.total_ns);
    let name =
        |work: &&Elsewhere| format!("{} × `{}`", units::count(work.count), short(&work.name));
    let names = units::bounded(found.iter().map(name).collect(), NAMED, "more kernels");
    let (place, advice) = match why {
        ElsewhereReason::OtherStream => (
            "ran on another stream than the timed one",
            "name that stream, or use `clock = \"kernels\"`",
        ),
        ElsewhereReason::AfterStop => (
            "was enqueued outside of the launches that events bracket",
            "use `scope = \"body\"` or `clock = \"kernels\"`",
        ),
    };
    let calls = if times.opened == 1 { "call" } else { "calls" };
    (!found.is_empty()).then(|| {
        format!(
            "{} of work in {} recorded {calls} {place}, so the times by events do not include it: {}; {advice}",
            time(total_ns),
            times.opened,
            names.join(", ")
        )
    })
}

/// Returns a name shortened for use in a sentence.
pub fn short(name: &str) -> String {
    const COLUMNS: usize = 60;
    kernel_names::short(name, COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_whole_numbers_have_no_decimals() {
        let texts = [2.0, 1.999_97, 2.4, 2.000_6, 1e3, 12_000.0].map(units::decimal);
        assert_eq!(texts, ["2", "2", "2.400", "2.001", "1\u{202f}000", "12\u{202f}000"]);
    }
}
