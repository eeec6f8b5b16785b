//! Kernels that only one of two programs runs.

use std::collections::{BTreeMap, BTreeSet};

use gpu_time_report::units::{bounded, joined};
use gpu_time_report::{Kernel, KernelTimes, Series, shortened_kernels};

/// The maximum number of kernels that a note names.
const NAMED: usize = 3;

/// The maximum number of notes.
pub const NOTES: usize = 10;
/// What the notes beyond are about.
pub const OTHERS: &str = "more series run other kernels";

/// The maximum width of a kernel's name in a note.
const COLUMNS: usize = 60;

/// Describes how the kernels of a series differ between the base and the new report. Medians do not
/// show that a library has chosen other kernels. `None` if they are the same, or if either report
/// has no recorded call.
pub fn differences(name: &str, [base, new]: [&Series; 2]) -> Option<String> {
    let [base, new] = [base, new].map(|series| series.kernel_times.as_ref().map(names));
    let (base, new) = base.zip(new)?;
    // Kernels beyond a report's limit are combined and have no names.
    let is_complete = |names: &BTreeSet<&str>| !names.contains(Kernel::OTHER);
    let all: Vec<&str> = base.union(&new).copied().collect();
    let short: BTreeMap<&str, String> =
        all.iter().copied().zip(shortened_kernels(&all, COLUMNS)).collect();
    let only = |ours: &BTreeSet<&str>, theirs: &BTreeSet<&str>, place: &str| {
        let only = ours.difference(theirs).filter(|name| **name != Kernel::OTHER);
        let named = only.map(|name| format!("`{}`", short[name])).collect();
        let named = bounded(named, NAMED, "more");
        (!named.is_empty() && is_complete(theirs))
            .then(|| format!("{} only in {place}", named.join(", ")))
    };
    let parts = [only(&base, &new, "the base"), only(&new, &base, "the new report")];
    joined(&parts, "; ").map(|parts| format!("{name} runs other kernels: {parts}"))
}

fn names(times: &KernelTimes) -> BTreeSet<&str> {
    times.kernels.iter().map(|kernel| kernel.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use gpu_time_report::value;

    use super::*;
    use crate::fixtures::series;
    use crate::opened_calls::opened;

    fn of(kernels: &[&str]) -> Series {
        let kernels: Vec<_> = kernels.iter().map(|name| (*name, 1, 1000.0)).collect();
        let kernel_times = Some(opened(4, &kernels));
        value!(Series { kernel_times, ..series("cuda:0", &[5000.0; 9], &[], 0.0) })
    }

    fn note(base: &[&str], new: &[&str]) -> Option<String> {
        differences("f on cuda:0", [&of(base), &of(new)])
    }

    #[test]
    fn other_kernels_are_named() {
        assert_eq!(note(&["a", "b"], &["b", "a"]), None);
        assert_eq!(
            note(&["a", "b"], &["b", "c", "d", "e", "f", "g"]).unwrap(),
            "f on cuda:0 runs other kernels: `a` only in the base; `c`, `d`, `e`, 2 more only in the new \
             report"
        );
    }

    #[test]
    fn kernels_that_a_report_may_have_are_not_missing() {
        assert_eq!(note(&["a", "b"], &["a", "<other>"]), None);
        let without = series("cuda:0", &[5000.0; 9], &[], 0.0);
        assert_eq!(differences("f", [&without, &of(&["a"])]), None);
    }

    #[test]
    fn many_notes_are_counted() {
        let notes =
            |count: usize| bounded(vec!["f runs other kernels".to_owned(); count], NOTES, OTHERS);
        assert_eq!([10, 11, 12, 300].map(|count| notes(count).len()), [10, 11, 11, 11]);
        assert!(notes(300)[10].starts_with("290 more "));
    }

    #[test]
    fn long_names_differ_in_the_note() {
        let name = |tile: u32| {
            format!(
                "void cutlass::device_kernel<cutlass::gemm::Universal<cute::tuple<int, int>, \
                 cute::tuple<cute::C<128>, cute::C<{tile}> >, cutlass::epilogue::Linear<float> > >(Params)"
            )
        };
        let [old, new] = [64, 256].map(name);
        let note = note(&[&old], &[&new]).unwrap();
        assert!(note.contains("C<64>") && note.contains("C<256>"), "{note}");
        assert!(note.len() < 240, "{note}");
    }
}
