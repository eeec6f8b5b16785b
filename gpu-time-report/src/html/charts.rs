//! Data for the page's script: the JSON report, with histograms replaced by chart bins, because a
//! histogram may have many buckets, and without the call tree, which the page has as a table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::stats::step_ns;
use crate::{Clock, Lost, Series, Snapshot};

/// The number of bins in a chart: few enough to be distinguishable, and enough that a single bin
/// does not fill the chart.
const MOST: f64 = 64.0;
const FEWEST: usize = 16;

/// A time is an outlier if it exceeds the 95th percentile by more than this multiple of the
/// distance between the 5th and the 95th percentile. Outliers are counted, but not drawn to scale.
const OUTLIER: f64 = 2.0;

#[derive(Serialize)]
struct Page {
    report: Snapshot,
    /// Indexed by site, then by series.
    bins: Vec<Vec<Option<Bins>>>,
    /// The meaning of each loss reason.
    lost: BTreeMap<&'static str, &'static str>,
}

/// The number of raw times in each of several adjacent intervals of equal width.
#[derive(Debug, PartialEq, Serialize)]
struct Bins {
    low_ns: f64,
    width_ns: f64,
    counts: Vec<u64>,
    /// The number of longer times.
    above: u64,
}

/// Returns the page's data as JSON, with the functions at these indices, which are in order.
pub fn json(snapshot: &Snapshot, shown: &[usize]) -> String {
    let mut report = snapshot.clone();
    report.tree.clear();
    let mut at = 0..;
    report.sites.retain(|_| at.next().is_some_and(|at| shown.binary_search(&at).is_ok()));
    let Snapshot { devices, sites, .. } = &mut report;
    let bins = sites.iter_mut().map(|site| {
        let each = site.series.iter_mut().map(|series| {
            let device = devices.iter().find(|device| device.id == series.device);
            let bins = Bins::of(series, device.and_then(|device| device.event_step_ns));
            series.histogram = Default::default();
            bins
        });
        each.collect()
    });
    let bins = bins.collect();
    let lost = Lost::ALL.map(|reason| (reason.name(), reason.meaning())).into();
    // Cannot fail: every key is a string and every value a number, a string or a list.
    serde_json::to_string(&Page { report, bins, lost }).unwrap_or_default()
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
        let width_ns = ((last - first) / step / MOST).ceil().max(1.0) * step;
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

    proptest! {
        #[test]
        fn bins_count_every_time(
            times in prop::collection::vec(0.0f64..1e9, 1..200),
            spread in 0.0f64..9.0,
        ) {
            let times: Vec<f64> = times.iter().map(|ns| 1e9 + ns / 10f64.powf(spread)).collect();
            let bins = Bins::of(&series(&times), Some(32.0)).unwrap();
            prop_assert!(bins.counts.len() <= MOST as usize + 1);
            prop_assert_eq!(bins.counts.iter().sum::<u64>() + bins.above, times.len() as u64);
        }
    }
}
