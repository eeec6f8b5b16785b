//! Data for the page's script: the JSON report, with histograms, timelines and kernels reduced to
//! what the page can show, and without the call tree, which the page contains as a table.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::digits::shortened;
use super::kernels::Kernels;
use crate::stats::step_ns;
use crate::{Clock, Lost, Series, Slot, Snapshot, Timeline};

/// The number of bins in a chart: few enough to be distinguishable, and enough that a single bin
/// does not fill the chart.
const MAX_BINS: f64 = 64.0;
const FEWEST: usize = 16;

/// A time is an outlier if it exceeds the 95th percentile by more than this multiple of the
/// distance between the 5th and the 95th percentile. Outliers are counted, but not drawn to scale.
const OUTLIER: f64 = 2.0;

/// The minimum number of digits of a time in a chart. Charts show no more.
const DIGITS: u32 = 4;

/// The statistics of which the page shows only [`RANGE`].
pub const OF_OPENED: [&str; 5] = ["busy_ns", "self_busy_ns", "span_ns", "gaps_ns", "host_ns"];
const RANGE: [&str; 3] = ["p5", "median", "p95"];

/// The number of raw times in each of several adjacent intervals of equal width.
#[derive(Debug, PartialEq, Serialize)]
struct Bins {
    low_ns: f64,
    width_ns: f64,
    counts: Vec<u64>,
    /// The number of times beyond the last interval.
    above: u64,
}

/// The slots of a timeline, in columns. Indices, counts and means are stored as differences.
#[derive(Debug, PartialEq, Serialize)]
struct Slots {
    origin_ns: u64,
    width_ns: u64,
    /// The unit of the times.
    unit_ns: u64,
    /// Empty if every slot has samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    indices: Vec<i64>,
    counts: Vec<i64>,
    means: Vec<i64>,
    /// The distance of the shortest and of the longest time from the mean.
    below: Vec<i64>,
    above: Vec<i64>,
}

/// Returns the page's data as JSON, with the functions at these indices, which must be sorted.
pub fn json(snapshot: &Snapshot, shown: &[usize]) -> String {
    let mut report = snapshot.clone();
    report.tree.clear();
    let mut at = 0..;
    report.sites.retain(|_| at.next().is_some_and(|at| shown.binary_search(&at).is_ok()));
    let Snapshot { devices, sites, .. } = &mut report;
    let kernels = Kernels::of(sites);
    let charts = sites.iter_mut().map(|site| {
        let of_series = |series: &mut Series| {
            let device = devices.iter().find(|device| device.id == series.device);
            let bins = Bins::of(series, device.and_then(|device| device.event_step_ns));
            series.histogram = Default::default();
            if let Some(times) = &mut series.kernel_times {
                (times.kernels, times.elsewhere) = Default::default();
            }
            (bins, series.timeline.take().as_ref().and_then(Slots::of))
        };
        site.series.iter_mut().map(of_series).unzip::<_, _, Vec<_>, Vec<_>>()
    });
    // Indexed by site, then by series.
    let (bins, timelines): (Vec<_>, Vec<_>) = charts.unzip();
    let lost: BTreeMap<_, _> = Lost::ALL.map(|reason| (reason.name(), reason.meaning())).into();
    // Cannot fail: every key is a string and every value a number, a string or a list.
    let mut stripped = serde_json::to_value(&report).unwrap_or_default();
    for site in stripped["sites"].as_array_mut().into_iter().flatten() {
        for series in site["series"].as_array_mut().into_iter().flatten() {
            for name in OF_OPENED {
                let stats = series.get_mut(name).and_then(Value::as_object_mut);
                stats.into_iter().for_each(|all| all.retain(|name, _| RANGE.contains(&&**name)));
            }
            strip(series);
        }
    }
    json!({
        "report": stripped,
        "bins": bins,
        "timelines": timelines,
        "kernels": kernels,
        "lost": lost,
    })
    .to_string()
}

/// Removes fields that are null or an empty list, and loss reasons with a count of 0. The script
/// treats missing fields the same way. Rounds numbers to what the page can show.
pub fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
            fields.retain(|_, value| !value.is_null() && !is_empty(value));
            if let Some(lost) = fields.get_mut("lost").and_then(Value::as_object_mut) {
                lost.retain(|_, count| *count != 0);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Number(number) if number.is_f64() => {
            *number = number.as_f64().and_then(shortened).unwrap_or_else(|| number.clone());
        }
        _ => {}
    }
}

impl Slots {
    fn of(timeline: &Timeline) -> Option<Slots> {
        let slots = &timeline.slots;
        let shortest = slots.iter().map(|slot| slot.min_ns).min()?;
        let spare_digits = (shortest.checked_ilog10().unwrap_or(0) + 1).saturating_sub(DIGITS);
        let unit_ns = 10u64.pow(spare_digits);
        let rounded = |ns: u64| (ns.saturating_add(unit_ns / 2) / unit_ns) as i64;
        let mean = |slot: &Slot| rounded(slot.mean_ns);
        let has_gaps = (0..).zip(slots).any(|(at, slot)| slot.index != at);
        let column = |of: &dyn Fn(&Slot) -> i64| slots.iter().map(of).collect();
        Some(Slots {
            origin_ns: timeline.origin_ns,
            width_ns: timeline.width_ns,
            unit_ns,
            indices: if has_gaps { steps(column(&|slot| i64::from(slot.index))) } else { vec![] },
            counts: steps(column(&|slot| slot.count as i64)),
            means: steps(column(&mean)),
            below: column(&|slot| mean(slot).wrapping_sub(rounded(slot.min_ns))),
            above: column(&|slot| rounded(slot.max_ns).wrapping_sub(mean(slot))),
        })
    }
}

/// Returns the first value, then the differences between neighbours, which take fewer digits.
fn steps(values: Vec<i64>) -> Vec<i64> {
    let before = [0].into_iter().chain(values.iter().copied());
    values.iter().zip(before).map(|(value, before)| value.wrapping_sub(before)).collect()
}

impl Bins {
    fn of(series: &Series, event_step_ns: Option<f64>) -> Option<Bins> {
        let times = &series.histogram;
        let stats = series.raw_ns.as_ref()?;
        let (first, _) = times.iter().next()?;
        let spread = stats.p95 - stats.p5;
        let most = stats.p95 + OUTLIER * if spread > 0.0 { spread } else { 0.01 * stats.p95 };
        let (last, _) = times.iter().take_while(|&(ns, _)| ns <= most).last()?;
        // Event times lie on a grid. Bins that did not follow it would be alternately full and
        // empty.
        let event_step = event_step_ns.filter(|_| series.clock == Clock::Events);
        let step = step_ns(last).max(event_step.unwrap_or(1.0)).max(1.0);
        let width_ns = ((last - first) / step / MAX_BINS).ceil().max(1.0) * step;
        let low_ns = first - step / 2.0;
        let bins = ((last - low_ns) / width_ns) as usize + 1;
        let spare = FEWEST.saturating_sub(bins);
        let low_ns = low_ns - (spare / 2) as f64 * width_ns;
        let mut counts = vec![0u64; bins + spare];
        let mut above = 0u64;
        for (ns, count) in times.iter() {
            match counts.get_mut(((ns - low_ns) / width_ns) as usize) {
                Some(bin) if ns <= last => *bin = bin.saturating_add(count),
                _ => above = above.saturating_add(count),
            }
        }
        Some(Bins { low_ns, width_ns, counts, above })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::everything;
    use crate::{Distribution, Series};
    use proptest::prelude::*;

    fn series(times: &[f64]) -> Series {
        let mut distribution = Distribution::new();
        times.iter().for_each(|&ns| distribution.record(ns));
        let summary = distribution.summary();
        let like = everything().sites[0].series[0].clone();
        let raw_ns = summary.stats(0.0, summary.sum(0.0));
        Series { raw_ns, histogram: summary.histogram().clone(), ..like }
    }

    #[test]
    fn bins_follow_the_event_step() {
        // One time per 32 ns step, so all bins must be equally full.
        let times: Vec<f64> = (0..400).map(|step| 5000.0 + 32.0 * f64::from(step)).collect();
        let bins = Bins::of(&series(&times), Some(32.0)).unwrap();
        assert_eq!(bins.width_ns % 32.0, 0.0);
        let full = (bins.width_ns / 32.0) as u64;
        let (last, others) = bins.counts.split_last().unwrap();
        assert!(others.iter().all(|&count| count == full), "{bins:?}");
        assert!(*last <= full && bins.above == 0, "{bins:?}");
    }

    #[test]
    fn bins_count_outliers_apart() {
        let mut times: Vec<f64> = (0..1000).map(|i| 10_000.0 + f64::from(i % 50) * 10.0).collect();
        times.extend([5e6, 7e7]);
        let bins = Bins::of(&series(&times), None).unwrap();
        assert_eq!(bins.above, 2);
        assert!(bins.width_ns * bins.counts.len() as f64 <= 2_000.0, "{bins:?}");
    }

    #[test]
    fn bins_center_a_single_time() {
        let bins = Bins::of(&series(&[7000.0; 5]), Some(32.0)).unwrap();
        assert_eq!((bins.counts.len(), bins.above), (FEWEST, 0));
        assert_eq!(bins.counts.iter().position(|&count| count == 5), Some(FEWEST / 2 - 1));
        assert_eq!(Bins::of(&series(&[]), Some(32.0)), None);
    }

    /// Restores values from their differences, as the script does.
    fn sums(steps: &[i64]) -> Vec<i64> {
        let add = |sum: &mut i64, step: &i64| {
            *sum += step;
            Some(*sum)
        };
        steps.iter().scan(0, add).collect()
    }

    proptest! {
        #[test]
        fn slots_have_the_digits_that_are_shown(
            times in prop::collection::vec((0u64..1 << 40, 1.0f64..1e10), 1..300),
        ) {
            let mut course = crate::Course::new();
            times.iter().for_each(|&(at_ns, ns)| course.record(at_ns, ns));
            let timeline = course.timeline(0).unwrap();
            let slots = Slots::of(&timeline).unwrap();
            let [indices, counts, means] = [&slots.indices, &slots.counts, &slots.means].map(|all| sums(all));
            for (at, slot) in timeline.slots.iter().enumerate() {
                let index = indices.get(at).map_or(at as u32, |index| *index as u32);
                let found = (index, counts[at] as u64);
                prop_assert_eq!(found, (slot.index, slot.count));
                let times = [means[at] - slots.below[at], means[at], means[at] + slots.above[at]];
                for (found, ns) in times.into_iter().zip([slot.min_ns, slot.mean_ns, slot.max_ns]) {
                    let found_ns = found as f64 * slots.unit_ns as f64;
                    prop_assert!((found_ns - ns as f64).abs() <= 0.0005 * ns as f64, "{found_ns} {ns}");
                }
            }
        }

        #[test]
        fn bins_count_every_time(
            times in prop::collection::vec(0.0f64..1e9, 1..200),
            spread in 0.0f64..9.0,
        ) {
            let times: Vec<f64> = times.iter().map(|ns| 1e9 + ns / 10f64.powf(spread)).collect();
            let bins = Bins::of(&series(&times), Some(32.0)).unwrap();
            prop_assert!(bins.counts.len() <= MAX_BINS as usize + 1);
            prop_assert_eq!(bins.counts.iter().sum::<u64>() + bins.above, times.len() as u64);
        }
    }
}
