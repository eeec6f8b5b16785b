//! What the functions of a report gained since an earlier report of the same process.

use crate::{Launches, Series, Site, Summary, Work};

/// The functions that were called since the sites were these, with what was counted and measured since.
/// Of their series there are those of which a bracket has begun since.
#[doc(hidden)]
pub fn since(earlier: &[Site], now: &[Site]) -> Vec<Site> {
    // Sites keep their places, and new ones join at the end.
    let known = earlier.iter().map(Some).chain(std::iter::repeat(None));
    let gained = now.iter().zip(known).map(|(site, before)| site_since(before, site));
    gained.filter(|site| site.calls > 0 || !site.series.is_empty()).collect()
}

fn site_since(before: Option<&Site>, now: &Site) -> Site {
    let Some(before) = before else { return now.clone() };
    let same = |series: &Series| before.series.iter().find(|earlier| is_same(earlier, series));
    let series = now.series.iter().filter_map(|series| match same(series) {
        Some(earlier) => (series.timed > earlier.timed).then(|| series_since(earlier, series)),
        None => Some(series.clone()),
    });
    Site {
        name: now.name.clone(),
        file: now.file.clone(),
        line: now.line,
        scope: now.scope,
        launches_seen: now.launches_seen,
        options: now.options.clone(),
        calls: now.calls.saturating_sub(before.calls),
        warmup: now.warmup.saturating_sub(before.warmup),
        skipped: now.skipped.saturating_sub(before.skipped),
        unsampled: now.unsampled.saturating_sub(before.unsampled),
        timed: now.timed.saturating_sub(before.timed),
        holds_released: now.holds_released.saturating_sub(before.holds_released),
        holds_expired: now.holds_expired.saturating_sub(before.holds_expired),
        sample_rate: now.sample_rate,
        warnings: now.warnings.clone(),
        series: series.collect(),
    }
}

/// Whether one is the other at another time.
fn is_same(one: &Series, other: &Series) -> bool {
    let launch = |series: &Series| series.launch.as_ref().map(|launch| launch.index);
    let words = |series: &Series| (launch(series), series.graph, series.cache, series.clock);
    words(one) == words(other) && one.device == other.device && one.key == other.key
}

fn series_since(before: &Series, now: &Series) -> Series {
    let count = |count: &dyn Fn(&Series) -> u64| count(now).saturating_sub(count(before));
    let mut lost = now.lost;
    lost.take_off(before.lost);
    let measured = count(&|series| series.measured);
    let (fed, starved) = (count(&|series| series.fed), count(&|series| series.starved));
    let brackets = launches(now) - launches(before);

    let raw_sum_ns = raw_sum(now) - raw_sum(before);
    let net_sum_ns = now.bias_ns.map(|bias| (raw_sum_ns - bias * brackets).max(0.0));
    let net_sum_ns = net_sum_ns.filter(|_| now.net_sum_ns.is_some() && fed + starved > 0);
    // Earlier ones of another kind are not among the times of now.
    let earlier = (before.fed > 0) == (now.fed > 0);
    let earlier = summary(before).filter(|_| earlier).unwrap_or_default();
    let shown = summary(now).unwrap_or_default().since(&earlier);
    let each = f64::from(now.launches.map_or(1, |launches| launches.max));
    let bias_ns = now.net_ns.and(now.bias_ns).map(|bias| bias * each);
    let net_ns =
        bias_ns.and_then(|bias| shown.stats(bias, net_sum_ns.unwrap_or_else(|| shown.sum(bias))));

    let is_all = now.estimated_total_error_ns == Some(0.0);
    let estimated = now.estimated_total_ns.map(|total| match net_sum_ns {
        _ if !is_all => (total - before.estimated_total_ns.unwrap_or(0.0)).max(0.0),
        net => net.unwrap_or(raw_sum_ns),
    });
    let error = now.estimated_total_error_ns.map(|error| {
        let earlier = before.estimated_total_error_ns.unwrap_or(0.0);
        (error * error - earlier * earlier).max(0.0).sqrt()
    });

    let samples = if now.fed > 0 { fed } else { starved };
    let median_ns = net_ns.map(|net| net.median);
    let work = |now: Option<Work>, before: Option<Work>| {
        let gained = now?.less(before.unwrap_or_default());
        (gained.samples() > 0).then_some(gained)
    };
    let bytes = |series: &Series| series.bytes.as_ref().map(Work::of_bytes);
    let flops = |series: &Series| series.flops.as_ref().map(Work::of_flops);
    Series {
        // With brackets that had begun before, and ended since.
        timed: measured + now.in_flight + lost.total(),
        measured,
        in_flight: now.in_flight,
        lost,
        fed,
        starved,
        at_floor: count(&|series| series.at_floor),
        queued: count(&|series| series.queued),
        nested: count(&|series| series.nested),
        tracked: count(&|series| series.tracked),
        upper_bound: fed == 0 && starved > 0,
        launches: now
            .launches
            .filter(|_| fed + starved > 0)
            .map(|launches| Launches { mean: brackets / (fed + starved) as f64, ..launches }),
        raw_ns: shown.stats(0.0, raw_sum_ns),
        net_ns,
        net_sum_ns,
        estimated_total_ns: estimated,
        estimated_total_error_ns: error,
        ci95_ns: shown.median_interval(),
        histogram: shown.histogram().clone(),
        // Its slots may be wider than the time since.
        timeline: None,
        bytes: work(bytes(now), bytes(before)).map(|work| work.bytes(samples, median_ns)),
        flops: work(flops(now), flops(before)).map(|work| work.flops(samples, median_ns)),
        ..now.clone()
    }
}

/// How many launches the samples in the statistics add up.
fn launches(series: &Series) -> f64 {
    let each = series.launches.map_or(1.0, |launches| launches.mean);
    each * (series.fed + series.starved) as f64
}

fn raw_sum(series: &Series) -> f64 {
    series.raw_ns.map_or(0.0, |raw| raw.sum)
}

/// The raw times that the percentiles are of.
fn summary(series: &Series) -> Option<Summary> {
    Some(Summary::of(&series.raw_ns?, series.histogram.clone()))
}
