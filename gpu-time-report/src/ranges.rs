//! The ranges of the values in a report. Reports from elsewhere may contain any number, of which
//! sums, products and ratios can be infinite or undefined.

use std::collections::BTreeMap;

use crate::{
    Bytes, Coverage, Dependence, Device, Elsewhere, Eviction, Flops, FlushProof, Kernel,
    KernelTimes, Launches, Node, Overlap, PerCall, PhaseKernel, Run, Series, Site, Snapshot, Stats,
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
        self.limit(LARGEST);
        for device in &mut self.devices {
            device.used_by.sort_unstable();
            device.used_by.dedup();
        }
    }
}

/// Figures that have ranges.
trait Ranged {
    /// Brings a figure into the range from 0 to `most`, and those of a value into ranges of their own.
    fn limit(&mut self, most: f64);
}

/// Lists the figures of each value: amounts, and behind a semicolon shares of a whole.
macro_rules! ranges {
    ($($kind:ident { $($amount:ident)*; $($share:ident)* })*) => {
        $(impl Ranged for $kind {
            fn limit(&mut self, _: f64) {
                $(self.$amount.limit(LARGEST);)*
                $(self.$share.limit(1.0);)*
            }
        })*
    };
}

ranges! {
    Snapshot { devices tree sites; }
    Device { overlap flush_proof coverage; }
    Overlap { ns; }
    FlushProof { clean dirty; }
    Eviction { ; missed_after_read missed_after_write missed_discarded }
    Coverage {
        total_ns covered_ns busy_error idle_error attributed_error not_annotated_error not_timed_error kernels;
        busy idle attributed not_timed
    }
    PhaseKernel { total_ns median_ns share per_s; }
    Node { calls inclusive_ns inclusive_error_ns self_ns self_error_ns self_ns_by_device per_call; share }
    PerCall { busy_ns span_ns waited_ns host_ns kernels; }
    Site { series; sample_rate }
    Series {
        raw_ns net_ns host_ns runs bytes flops kernel_times bias_ns added_ns net_sum_ns estimated_total_ns
        estimated_total_error_ns launches inner_brackets ci95_ns dependence;
    }
    Stats { min p5 median mean p95 p99 max stddev sum; }
    Run { raw_median_ns net_median_ns raw_mean_ns ci95_ns; }
    Bytes { per_call total gb_per_s peak_share; }
    Flops { per_call total tflop_per_s; }
    Launches { mean; }
    Dependence { independent; }
    KernelTimes { busy_ns self_busy_ns span_ns gaps_ns kernels_per_call kernels elsewhere; }
    Kernel { per_call total_ns time_ns; share }
    Elsewhere { total_ns; }
}

impl Ranged for f64 {
    fn limit(&mut self, most: f64) {
        *self = if *self < SMALLEST { 0.0 } else { self.min(most) };
    }
}

impl<T: Ranged> Ranged for Option<T> {
    fn limit(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.limit(most));
    }
}

impl<T: Ranged> Ranged for Vec<T> {
    fn limit(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.limit(most));
    }
}

impl Ranged for [f64; 2] {
    fn limit(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.limit(most));
    }
}

impl Ranged for BTreeMap<String, f64> {
    fn limit(&mut self, most: f64) {
        self.values_mut().for_each(|value| value.limit(most));
    }
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
        coverage.kernels.truncate(1);
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
