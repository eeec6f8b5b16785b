//! The texts and figures of a report, which are checked where they enter a snapshot, so that nothing else needs to check
//! them.
//!
//! Texts come from the program or from a file of somebody else: they are made printable. Reports from elsewhere may contain
//! any number, of which sums, products and ratios can be infinite or undefined: figures are brought into their ranges.

use std::collections::BTreeMap;
use std::mem;

use crate::units::{is_hidden, printable};
use crate::{
    Bytes, Coverage, Dependence, Device, Elsewhere, Eviction, Flops, FlushProof, Kernel,
    KernelTimes, Launch, Launches, Node, PerCall, PhaseKernel, Process, Run, Series, Site, Stats,
};

/// The maximum length of a text in bytes. Names of kernels have up to 8 KiB.
pub const MAX_TEXT: usize = 64 << 10;

/// The largest amount: more than all GPUs compute in a millennium, and small enough for sums and
/// products.
const LARGEST: f64 = 1e30;

/// The smallest amount above zero, so that ratios are finite.
const SMALLEST: f64 = 1e-30;

/// Values with texts and figures.
pub trait Checked {
    /// Makes the texts printable, and at most [`MAX_TEXT`] bytes long. Brings a figure into the range from 0 to `most`, and
    /// those of a value into ranges of their own.
    fn check(&mut self, most: f64);
}

/// Lists the texts and amounts of each value, and behind a semicolon shares of a whole.
macro_rules! checked {
    ($($kind:ident { $($field:ident)*; $($share:ident)* })*) => {
        $(impl Checked for $kind {
            fn check(&mut self, _: f64) {
                $(self.$field.check(LARGEST);)*
                $(self.$share.check(1.0);)*
            }
        })*
    };
}

checked! {
    Process { name started version warnings program_version label host off kernels merged; }
    Device {
        id name warnings throttle driver driver_release uuid event_bias_source flush_proof coverage;
    }
    FlushProof { clean dirty; }
    Eviction { method; missed_after_read missed_after_write missed_discarded }
    Coverage {
        total_ns covered_ns busy_error idle_error attributed_error not_annotated_error not_timed_error kernels;
        busy idle attributed not_timed
    }
    PhaseKernel { name total_ns median_ns share per_s; }
    Node {
        name calls inclusive_ns inclusive_error_ns self_ns self_error_ns self_ns_by_device per_call;
        share
    }
    PerCall { busy_ns span_ns waited_ns host_ns kernels; }
    Site { name file options gpu_keys warnings series; sample_rate }
    Series {
        device key launch raw_ns net_ns host_ns runs bytes flops kernel_times bias_ns added_ns net_sum_ns
        estimated_total_ns estimated_total_error_ns launches inner_brackets ci95_ns dependence;
    }
    Launch { name; }
    Stats { min p5 median mean p95 p99 max stddev sum; }
    Run { raw_median_ns net_median_ns raw_mean_ns ci95_ns; }
    Bytes { per_call total gb_per_s peak_share; }
    Flops { per_call total tflop_per_s; }
    Launches { mean; }
    Dependence { independent; }
    KernelTimes { busy_ns self_busy_ns span_ns gaps_ns kernels_per_call kernels elsewhere; }
    Kernel { name per_call total_ns time_ns; share }
    Elsewhere { name total_ns; }
}

impl Checked for f64 {
    fn check(&mut self, most: f64) {
        *self = if *self < SMALLEST { 0.0 } else { self.min(most) };
    }
}

/// A count may be any number.
impl Checked for u64 {
    fn check(&mut self, _: f64) {}
}

impl Checked for String {
    fn check(&mut self, _: f64) {
        const MORE: &str = "…";
        if is_clean(self) {
            return;
        }
        *self = printable(self);
        if self.len() > MAX_TEXT {
            let mut end = MAX_TEXT - MORE.len();
            while !self.is_char_boundary(end) {
                end -= 1;
            }
            self.truncate(end);
            self.push_str(MORE);
        }
    }
}

impl<T: Checked> Checked for Option<T> {
    fn check(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.check(most));
    }
}

impl<T: Checked> Checked for Vec<T> {
    fn check(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.check(most));
    }
}

impl<T: Checked, const N: usize> Checked for [T; N] {
    fn check(&mut self, most: f64) {
        self.iter_mut().for_each(|value| value.check(most));
    }
}

/// The keys are the texts of gpu-time itself, except in a report that is [read](check_keys).
impl<T: Checked> Checked for BTreeMap<String, T> {
    fn check(&mut self, most: f64) {
        self.values_mut().for_each(|value| value.check(most));
    }
}

/// Makes the keys printable, in a crate that reads reports.
#[inline]
pub fn check_keys<T>(map: &mut BTreeMap<String, T>) {
    if !map.keys().all(|key| is_clean(key)) {
        for (mut key, value) in mem::take(map) {
            key.check(0.0);
            map.insert(key, value);
        }
    }
}

fn is_clean(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::{Checked, MAX_TEXT};
    use crate::fixtures::kernels;
    use crate::tree::fixtures::tree;
    use crate::{Detail, Snapshot, Terminal};

    /// Replaces each of these numbers in turn.
    #[test]
    fn forged_figures_are_finite_in_all_renderings() {
        let mut report = kernels().with_tree(tree());
        let coverage = report.devices[0].coverage.as_mut().unwrap();
        (coverage.covered_ns, coverage.not_annotated_error) = (1e9, Some(0.001));
        coverage.kernels.truncate(1);
        report.sites[0].unsampled = 1;
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

    #[test]
    fn long_text_is_cut_between_characters() {
        for text in ["é".repeat(MAX_TEXT), "a".repeat(MAX_TEXT + 1), "\u{9b}".repeat(MAX_TEXT)] {
            let mut cut = text;
            cut.check(0.0);
            assert!((MAX_TEXT - 3..=MAX_TEXT).contains(&cut.len()) && cut.ends_with('…'));
        }
        let mut whole = "a".repeat(MAX_TEXT);
        whole.check(0.0);
        assert!(!whole.ends_with('…'));
    }
}
