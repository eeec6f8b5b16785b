//! How busy the device was, and the work that only phases found.

use super::exact;
use crate::harness::Run;
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::{Truth, union_ns};

/// Shares are compared in millionths.
const PPM: f64 = 1e6;

/// Compares the shares of the time since the first call of an annotated function, with which recording begins.
pub fn compare(run: &Run, truth: &Truth) -> Vec<Figure> {
    let Some(coverage) = &run.report().devices[0].coverage else { return Vec::new() };
    let first = truth.kernels.iter().filter(|kernel| kernel.frame.is_some());
    let Some(began_ns) = first.map(|kernel| kernel.enqueued_ns).min() else { return Vec::new() };
    let kernels = || truth.kernels.iter().filter(|kernel| kernel.enqueued_ns >= began_ns);
    let took = run.trace.calls().map(|call| call.after_ns).max().unwrap() - began_ns;
    // Virtual time goes on until the end of the process.
    let busy = union_ns(kernels()) as f64 / coverage.covered_ns;
    let annotated = union_ns(kernels().filter(|k| k.frame.is_some())) as f64 / coverage.covered_ns;
    println!("union {} of {} covered {coverage:?}", union_ns(kernels()), took);
    let mut figures = Vec::new();
    let mut compare = |kind, found: f64, truth: f64, error: Option<f64>| {
        // Too few phases tell no error.
        if let Some(error) = error {
            figures.push(exact(kind, "device", PPM * found, PPM * truth, PPM * 2.0 * error));
        }
    };
    compare("busy", coverage.busy, busy, coverage.busy_error);
    compare("idle", coverage.idle, 1.0 - busy, coverage.busy_error);
    compare("annotated", coverage.attributed, annotated, coverage.attributed_error);
    compare("not timed", coverage.not_timed, 0.0, coverage.not_timed_error);
    // The paths of what only phases found have the same shares of the time for which phases stand.
    let not_annotated = coverage.busy - coverage.attributed;
    for (name, share, truth) in [
        ("<not annotated>", not_annotated, busy - annotated),
        ("<annotated, not timed>", coverage.not_timed, 0.0),
    ] {
        let node = run.report().tree.iter().find(|node| node.name == name);
        let ns = node.map_or(0.0, |node| node.self_ns);
        figures.push(exact("path", name, ns, share * coverage.covered_ns, 0.0));
        let error = node.map_or(f64::NAN, |node| node.self_error_ns) / coverage.covered_ns;
        if !error.is_nan() {
            figures.push(exact("path share", name, PPM * share, PPM * truth, PPM * 2.0 * error));
        }
    }
    figures
}
