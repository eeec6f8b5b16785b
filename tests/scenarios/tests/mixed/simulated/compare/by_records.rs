//! Runs in which CUPTI records everything.

use std::collections::BTreeMap;

use super::coverage;
use crate::harness::Run;
use crate::harness::report::{Series, Stats};
use crate::harness::tree::paths;
use crate::mixed::simulated::checks::{exact, rows as rows_of, stats, tree};
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::{Kernel, Path, Row, Truth, add_inclusive, union_ns};

pub fn compare(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, &true_paths(truth), false));
    figures.extend(coverage::compare_whole(run, truth));
    figures.extend(means(run, truth));
    figures
}

/// The figures of one call.
pub struct Recorded {
    pub busy_ns: f64,
    self_busy_ns: f64,
    span_ns: f64,
    kernels: f64,
    /// The times of all kernels, whether or not they run at once.
    kernels_ns: f64,
}

fn recorded(frame: usize, inside: &[&Kernel]) -> Recorded {
    let busy_ns = union_ns(inside.iter().copied()) as f64;
    let inner = inside.iter().copied().filter(|kernel| kernel.frame != Some(frame));
    let start = inside.iter().map(|kernel| kernel.start_ns).min().unwrap_or(0);
    let end = inside.iter().map(|kernel| kernel.end_ns).max().unwrap_or(0);
    Recorded {
        busy_ns,
        self_busy_ns: busy_ns - union_ns(inner) as f64,
        span_ns: (end - start) as f64,
        kernels: inside.len() as f64,
        kernels_ns: inside.iter().map(|kernel| kernel.ns() as f64).sum(),
    }
}

/// Returns the figures of each row's calls.
pub fn true_rows(truth: &Truth) -> BTreeMap<Row, Vec<Recorded>> {
    let inside = truth.kernels_inside();
    let mut rows: BTreeMap<Row, Vec<Recorded>> = BTreeMap::new();
    for (frame, inside) in inside.iter().enumerate() {
        rows.entry(truth.row_of(frame)).or_default().push(recorded(frame, inside));
    }
    rows
}

fn rows(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (row, calls) in true_rows(truth) {
        let of = format!("{} {:?}", row.0.name(), row.1);
        let rows = rows_of(run, &row);
        let total = |part: fn(&Series) -> f64| rows.iter().map(|row| part(row)).sum::<f64>();
        let count = calls.len() as f64;
        figures.push(exact("timed", &of, total(|row| row.timed as f64), count, 0.0));
        figures.push(exact("opened", &of, total(|row| row.opened as f64), count, 0.0));
        let sum = |part: fn(&Recorded) -> f64| calls.iter().map(part).sum::<f64>();
        let within = 2.0 * total(|row| row.estimated_total_error_ns.unwrap_or(f64::NAN));
        figures.push(exact("total", &of, total(Series::total), sum(|call| call.busy_ns), within));
        let kernels =
            |row: &Series| row.opened as f64 * row.kernels.kernels_per_call.unwrap_or(f64::NAN);
        figures.push(exact("kernels", &of, total(kernels), sum(|call| call.kernels), 0.0));
        let kernels = rows.iter().flat_map(|row| &row.kernels.kernels);
        let (launches, ns) = kernels
            .fold((0, 0.0), |(count, ns), kernel| (count + kernel.count, ns + kernel.total_ns));
        figures.push(exact("launches", &of, launches as f64, sum(|call| call.kernels), 0.0));
        figures.push(exact("kernel time", &of, ns, sum(|call| call.kernels_ns), 0.0));
        let [row] = rows[..] else { continue };
        let mut of_part = |name: &str, found: &Option<Stats>, part: fn(&Recorded) -> f64| {
            let of = format!("{of} {name}");
            let samples = calls.iter().map(part).collect();
            let found = found.as_ref().unwrap_or_else(|| panic!("{of}: {row:?}"));
            figures.extend(stats(&of, found, samples, 0.0));
        };
        of_part("busy", &row.kernels.busy_ns, |call| call.busy_ns);
        of_part("self", &row.kernels.self_busy_ns, |call| call.self_busy_ns);
        let gaps = |call: &Recorded| call.span_ns - call.busy_ns;
        of_part("gaps", &row.kernels.gaps_ns, gaps);
        of_part("span", &row.kernels.span_ns, |call| call.span_ns);
    }
    figures
}

/// Compares the means of each path's calls.
fn means(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut expected: BTreeMap<String, Vec<Recorded>> = BTreeMap::new();
    for (frame, inside) in truth.kernels_inside().iter().enumerate() {
        let path = truth.path_of(frame).join("/");
        expected.entry(path).or_default().push(recorded(frame, inside));
    }
    let paths = paths(run);
    let mut figures = Vec::new();
    for (of, calls) in &expected {
        let Some(found) = paths.get(of).and_then(|node| node.per_call.as_ref()) else { continue };
        let mean =
            |part: fn(&Recorded) -> f64| calls.iter().map(part).sum::<f64>() / calls.len() as f64;
        figures.push(exact("busy per call", of, found.busy_ns, mean(|call| call.busy_ns), 0.0));
        figures.push(exact("span per call", of, found.span_ns, mean(|call| call.span_ns), 0.0));
        let kernels = found.kernels.unwrap_or(f64::NAN);
        figures.push(exact("kernels per call", of, kernels, mean(|call| call.kernels), 0.0));
    }
    figures
}

/// Returns each call's own time: while work of several functions of one outermost call runs at once, each instant
/// belongs to the one whose work started first.
fn self_times(truth: &Truth) -> Vec<f64> {
    let mut by_root: BTreeMap<usize, Vec<&Kernel>> = BTreeMap::new();
    for kernel in &truth.kernels {
        if let Some(root) = truth.outwards(kernel.frame).last() {
            by_root.entry(root).or_default().push(kernel);
        }
    }
    let mut times = vec![0.0; truth.frames.len()];
    for mut kernels in by_root.into_values() {
        kernels.sort_by_key(|kernel| kernel.start_ns);
        let mut last = 0;
        for kernel in kernels {
            let own = kernel.end_ns.saturating_sub(kernel.start_ns.max(last));
            times[kernel.frame.expect("it is inside of its root")] += own as f64;
            last = last.max(kernel.end_ns);
        }
    }
    times
}

/// Returns the true times of all paths.
pub fn true_paths(truth: &Truth) -> BTreeMap<Vec<&'static str>, Path> {
    let mut paths: BTreeMap<Vec<&str>, Path> = BTreeMap::new();
    for (frame, self_ns) in self_times(truth).into_iter().enumerate() {
        let path = paths.entry(truth.path_of(frame)).or_default();
        path.calls += 1.0;
        path.self_ns += self_ns;
    }
    for kernel in &truth.kernels {
        if let Some(frame) = kernel.frame {
            paths.entry(truth.path_of(frame)).or_default().launched_ns += kernel.ns() as f64;
        }
    }
    add_inclusive(&mut paths);
    paths
}
