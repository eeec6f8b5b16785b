//! The medians of a report for services that keep those of every commit.

use gpu_time_report::{Series, Snapshot};
use serde_json::{Value, json};

use crate::compare::comparison::{name, names};

/// The median of a series in nanoseconds, and its 95 % interval if that is known: net, or raw where the bias is unknown.
struct Median {
    ns: f64,
    interval: Option<[f64; 2]>,
}

impl Median {
    /// `None` without samples, and for an upper bound, which says more about the host than about the GPU.
    fn of(series: &Series) -> Option<Median> {
        let raw = series.raw_ns.filter(|_| !series.upper_bound)?.median;
        let ns = series.net_ns.map_or(raw, |net| net.median);
        let interval =
            series.ci95_ns.map(|interval| interval.map(|bound| (bound - raw + ns).max(0.0)));
        Some(Median { ns, interval })
    }
}

/// Returns the name of each series as in comparisons, with its median.
fn medians(report: &Snapshot) -> Vec<(String, Median)> {
    let names = names(report);
    let series = report.sites.iter().flat_map(|site| site.series.iter().map(move |of| (site, of)));
    let median = |(site, series)| Some((name(&names, site, series), Median::of(series)?));
    series.filter_map(median).collect()
}

/// Returns the Bencher Metric Format: the measure `latency` of each series, in nanoseconds.
pub fn bmf(report: &Snapshot) -> String {
    let metrics = medians(report).into_iter().map(|(name, Median { ns, interval })| {
        let [low, high] = [0, 1].map(|bound| interval.map(|interval| interval[bound]));
        (name, json!({ "latency": { "value": ns, "lower_value": low, "upper_value": high } }))
    });
    format!("{:#}\n", Value::Object(metrics.collect()))
}

/// Returns the list that github-action-benchmark takes with `tool: customSmallerIsBetter`.
pub fn github_action_benchmark(report: &Snapshot) -> String {
    let entries = medians(report).into_iter().map(|(name, Median { ns, interval })| {
        let range = interval.map(|[low, high]| format!("{low:.0} to {high:.0}"));
        json!({ "name": name, "unit": "ns", "value": ns, "range": range.unwrap_or_default() })
    });
    format!("{:#}\n", Value::Array(entries.collect()))
}
