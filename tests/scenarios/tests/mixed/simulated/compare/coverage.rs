//! How busy the device was, and the work that only phases found.

use gpu_time_scenarios::composition::Site;

use crate::harness::Run;
use crate::harness::report::Coverage;
use crate::mixed::simulated::checks::{ROUNDING, exact};
use crate::mixed::simulated::figures::{Figure, NOT_ANNOTATED_BESIDE_MAIN};
use crate::mixed::simulated::truth::{Kernel, Truth, union_ns};

/// Shares are compared in millionths.
const PPM: f64 = 1e6;

/// Returns the kernels in the order in which they were enqueued, from the first call of an annotated function on, with
/// which recording begins.
fn kernels(truth: &Truth) -> Vec<&Kernel> {
    let annotated = truth.kernels.iter().filter(|kernel| kernel.frame.is_some());
    let began_ns = annotated.map(|kernel| kernel.enqueued_ns).min().unwrap_or(u64::MAX);
    let is_recorded = |kernel: &&Kernel| kernel.enqueued_ns >= began_ns;
    let mut kernels: Vec<_> = truth.kernels.iter().filter(is_recorded).collect();
    kernels.sort_by_key(|kernel| kernel.enqueued_ns);
    kernels
}

/// Returns the time during which the device was busy with this work, and with that of annotated functions.
fn busy(kernels: &[&Kernel]) -> (f64, f64) {
    let annotated = kernels.iter().copied().filter(|kernel| kernel.frame.is_some());
    (union_ns(kernels.iter().copied()) as f64, union_ns(annotated) as f64)
}

/// Allows more than the truth.
fn up_to(figure: Figure, more: f64) -> Figure {
    Figure { most: figure.most + more, ..figure }
}

/// Compares the coverage of a run that is one phase.
pub fn compare_whole(run: &Run, truth: &Truth) -> Vec<Figure> {
    let coverage = run.report().devices[0].coverage.as_ref().expect("the run is a phase");
    let found = coverage.busy * coverage.total_ns;
    let kernels = kernels(truth);
    // The phase begins some milliseconds after the first call, and has all work from then on. It may have work of calls
    // that were recorded shortly before, too.
    let from = (0..kernels.len()).find(|from| busy(&kernels[*from..]).0 <= found + ROUNDING);
    let (before, inside) = kernels.split_at(from.unwrap_or(kernels.len()));
    let (busy_ns, annotated_ns) = busy(inside);
    let before_ns = busy(before).1;
    let found_annotated = coverage.attributed * coverage.total_ns;
    let mut figures = vec![
        up_to(exact("busy, whole", "device", found, busy_ns, 0.0), before_ns),
        up_to(exact("annotated, whole", "device", found_annotated, annotated_ns, 0.0), before_ns),
        exact("not timed, whole", "device", PPM * coverage.not_timed, 0.0, 0.0),
        exact("idle, whole", "device", PPM * (coverage.idle + coverage.busy), PPM, 0.0),
    ];
    figures.extend(paths(run, coverage));
    figures
}

/// Compares the coverage of phases.
pub fn compare_phases(run: &Run, truth: &Truth) -> Vec<Figure> {
    let Some(coverage) = &run.report().devices[0].coverage else { return Vec::new() };
    let kernels = kernels(truth);
    let share = |ns: f64| PPM * ns / coverage.covered_ns;
    let (busy, annotated) = busy(&kernels);
    let [busy, annotated] = [busy, annotated].map(share);
    let mut figures = paths(run, coverage);
    let mut compare = |kind, found: f64, truth: f64, error: Option<f64>| {
        // Too few phases tell no error.
        if let Some(error) = error {
            figures.push(exact(kind, "device", PPM * found, truth, 2.0 * PPM * error));
        }
    };
    compare("busy", coverage.busy, busy, coverage.busy_error);
    compare("idle", coverage.idle, PPM - busy, coverage.busy_error);
    compare("annotated", coverage.attributed, annotated, coverage.attributed_error);
    // The annotated `main` has a path.
    compare("not timed", coverage.not_timed, 0.0, coverage.not_timed_error);
    let not_annotated = coverage.busy - coverage.attributed;
    let node = run.report().tree.iter().find(|node| node.name == "<not annotated>");
    let error = node.map(|node| node.self_error_ns / coverage.covered_ns);
    let error = error.filter(|error| !error.is_nan());
    // Beside an annotated `main`, only other threads enqueue such work, while it is busy.
    let has_main = truth.frames.iter().any(|frame| frame.site == Site::Main);
    let kind = if has_main { NOT_ANNOTATED_BESIDE_MAIN } else { "not annotated" };
    compare(kind, not_annotated, busy - annotated, error);
    figures
}

/// The paths of what only phases found have the same shares of the time for which phases stand.
fn paths(run: &Run, coverage: &Coverage) -> Vec<Figure> {
    let not_annotated = coverage.busy - coverage.attributed;
    let paths =
        [("<not annotated>", not_annotated), ("<annotated, not timed>", coverage.not_timed)];
    let compare = |(name, share): (&str, f64)| {
        let node = run.report().tree.iter().find(|node| node.name == name);
        let ns = node.map_or(0.0, |node| node.self_ns);
        exact("path of phases", name, ns, share * coverage.covered_ns, 0.0)
    };
    paths.into_iter().map(compare).collect()
}
