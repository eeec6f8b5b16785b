//! The ranges of the values in a report. Reports from elsewhere may contain any number, of which
//! sums, products and ratios can be infinite or undefined.

use crate::{
    Bytes, Coverage, Device, Eviction, Flops, Kernel, KernelTimes, Node, PerCall, Run, Series,
    Snapshot, Stats, Unattributed,
};

/// The largest amount: more than all GPUs compute in a millennium, and small enough for sums and
/// products.
const LARGEST: f64 = 1e30;

/// The smallest amount above zero, so that ratios are finite.
const SMALLEST: f64 = 1e-30;

impl Snapshot {
    /// Brings all figures into their ranges. Sums and means of them are then finite, so nothing else
    /// needs to check.
    pub(crate) fn limit_to_ranges(&mut self) {
        self.devices.iter_mut().for_each(limit_device);
        self.tree.iter_mut().for_each(limit_node);
        for site in &mut self.sites {
            limit_share(&mut site.sample_rate);
            site.series.iter_mut().for_each(limit_series);
        }
    }
}

fn limit_series(series: &mut Series) {
    let Series { raw_ns, net_ns, host_ns, runs, bytes, flops, kernel_times, .. } = series;
    [raw_ns, net_ns, host_ns].into_iter().flatten().for_each(limit_stats);
    runs.iter_mut().for_each(limit_run);
    if let Some(Bytes { per_call, total, gb_per_s, peak_share, .. }) = bytes {
        [per_call, gb_per_s, peak_share].into_iter().flatten().for_each(limit_amount);
        limit_amount(total);
    }
    if let Some(Flops { per_call, total, tflop_per_s, .. }) = flops {
        [per_call, tflop_per_s].into_iter().flatten().for_each(limit_amount);
        limit_amount(total);
    }
    if let Some(times) = kernel_times {
        limit_kernel_times(times);
    }
    let Series { bias_ns, net_sum_ns, estimated_total_ns, estimated_total_error_ns, .. } = series;
    let single = [bias_ns, net_sum_ns, estimated_total_ns, estimated_total_error_ns];
    single.into_iter().flatten().for_each(limit_amount);
    let Series { launches, inner_brackets, ci95_ns, dependence, .. } = series;
    let means = launches.iter_mut().chain(inner_brackets).map(|launches| &mut launches.mean);
    let independent = dependence.iter_mut().map(|dependence| &mut dependence.independent);
    means.chain(ci95_ns.iter_mut().flatten()).chain(independent).for_each(limit_amount);
}

fn limit_stats(stats: &mut Stats) {
    *stats = stats.map(limited);
}

fn limit_run(run: &mut Run) {
    let Run { raw_median_ns, net_median_ns, raw_mean_ns, ci95_ns, .. } = run;
    let known = net_median_ns.iter_mut().chain(ci95_ns.iter_mut().flatten());
    [raw_median_ns, raw_mean_ns].into_iter().chain(known).for_each(limit_amount);
}

fn limit_kernel_times(times: &mut KernelTimes) {
    let KernelTimes { busy_ns, self_busy_ns, span_ns, gaps_ns, kernels, elsewhere, .. } = times;
    [busy_ns, self_busy_ns, span_ns, gaps_ns].into_iter().flatten().for_each(limit_stats);
    for Kernel { per_call, total_ns, share, time_ns, .. } in kernels {
        [per_call, total_ns].into_iter().for_each(limit_amount);
        limit_share(share);
        time_ns.iter_mut().for_each(limit_stats);
    }
    let totals = elsewhere.iter_mut().map(|work| &mut work.total_ns);
    times.kernels_per_call.iter_mut().chain(totals).for_each(limit_amount);
}

fn limit_device(device: &mut Device) {
    device.used_by.sort_unstable();
    device.used_by.dedup();
    if let Some(overlap) = &mut device.overlap {
        limit_amount(&mut overlap.ns);
    }
    if let Some(proof) = &mut device.flush_proof {
        proof.clean.iter_mut().chain(&mut proof.dirty).for_each(limit_eviction);
    }
    if let Some(coverage) = &mut device.coverage {
        limit_coverage(coverage);
    }
}

fn limit_eviction(eviction: &mut Eviction) {
    let Eviction { missed_after_read, missed_after_write, missed_discarded, .. } = eviction;
    let shares = [missed_after_read, missed_after_write].into_iter().chain(missed_discarded);
    shares.for_each(limit_share);
}

fn limit_coverage(coverage: &mut Coverage) {
    let Coverage { total_ns, busy, idle, attributed, not_timed, .. } = coverage;
    [busy, idle, attributed, not_timed].into_iter().for_each(limit_share);
    limit_amount(total_ns);
    limit_amount(&mut coverage.covered_ns);
    let Coverage {
        busy_error,
        idle_error,
        attributed_error,
        not_annotated_error,
        not_timed_error,
        ..
    } = coverage;
    let errors = [busy_error, idle_error, attributed_error, not_annotated_error, not_timed_error];
    errors.into_iter().flatten().for_each(limit_amount);
    for Unattributed { total_ns, share, per_s, .. } in &mut coverage.unattributed {
        [total_ns, share, per_s].into_iter().for_each(limit_amount);
    }
}

fn limit_node(node: &mut Node) {
    limit_share(&mut node.share);
    let Node { calls, inclusive_ns, inclusive_error_ns, self_ns, self_error_ns, .. } = node;
    let errors = inclusive_error_ns.iter_mut().chain(self_error_ns);
    [calls, inclusive_ns, self_ns].into_iter().chain(errors).for_each(limit_amount);
    node.self_ns_by_device.values_mut().for_each(limit_amount);
    if let Some(PerCall { busy_ns, span_ns, waited_ns, host_ns, kernels }) = &mut node.per_call {
        let known = [waited_ns, host_ns, kernels].into_iter().flatten();
        [busy_ns, span_ns].into_iter().chain(known).for_each(limit_amount);
    }
}

fn limit_share(share: &mut f64) {
    *share = share.clamp(0.0, 1.0);
}

fn limit_amount(amount: &mut f64) {
    *amount = limited(*amount);
}

fn limited(amount: f64) -> f64 {
    if amount < SMALLEST { 0.0 } else { amount.min(LARGEST) }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::kernels;
    use crate::tree::fixtures::tree;
    use crate::{Detail, Overlap, Snapshot, Terminal};

    /// Replaces each of these numbers in turn.
    #[test]
    fn forged_figures_are_finite_in_all_renderings() {
        let mut report = kernels().with_tree(tree());
        let coverage = report.devices[0].coverage.as_mut().unwrap();
        (coverage.covered_ns, coverage.not_annotated_error) = (1e9, Some(0.001));
        coverage.unattributed.truncate(1);
        report.sites[0].unsampled = 1;
        report.devices[0].overlap = Some(Overlap { ns: 5.0, partial: false });
        let whole = serde_json::to_value(report).unwrap();
        for list in ["devices", "tree", "sites"] {
            let mut paths = Vec::new();
            numbers(&whole[list], format!("/{list}"), &mut paths);
            assert!(paths.len() > 5, "{list}: {paths:?}");
            for (path, number) in paths.iter().flat_map(|path| NUMBERS.map(|number| (path, number)))
            {
                let mut forged = whole.clone();
                *forged.pointer_mut(path).unwrap() = number.into();
                let json = forged.to_string();
                let report = Snapshot::from_json(json.as_bytes()).unwrap();
                let tree = report.to_tree(Terminal::default());
                let table = report.to_table(Terminal::default(), Detail::All);
                for text in [table, tree, report.to_csv()] {
                    let word = text
                        .split(|c: char| !c.is_alphanumeric())
                        .find(|word| ["inf", "NaN"].contains(word));
                    assert_eq!(word, None, "{path} = {number}: {text}");
                }
            }
        }
    }

    const NUMBERS: [f64; 4] = [-1.0, -1e308, 1e308, 1e-308];

    /// Finds the paths of all numbers with a fraction.
    fn numbers(value: &serde_json::Value, path: String, paths: &mut Vec<String>) {
        match value {
            serde_json::Value::Number(number) if number.is_f64() => paths.push(path),
            serde_json::Value::Array(values) => {
                let values = values.iter().enumerate();
                values.for_each(|(at, value)| numbers(value, format!("{path}/{at}"), paths));
            }
            serde_json::Value::Object(values) => {
                let values = values.iter();
                values.for_each(|(name, value)| numbers(value, format!("{path}/{name}"), paths));
            }
            _ => {}
        }
    }
}
