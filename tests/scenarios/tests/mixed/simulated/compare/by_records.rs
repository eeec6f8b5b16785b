//! Runs in which CUPTI records everything.

use std::collections::BTreeMap;

use gpu_time_scenarios::composition::Site;

use super::{exact, stats};
use crate::harness::Run;
use crate::harness::report::Stats;
use crate::harness::tree::paths;
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::{Kernel, Truth, union_ns};

pub fn compare(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, truth));
    figures.extend(coverage(run, truth));
    figures
}

/// The figures of one call.
struct Recorded {
    busy_ns: f64,
    self_busy_ns: f64,
    span_ns: f64,
    kernels: f64,
}

fn recorded(frame: usize, truth: &Truth, inside: &[&Kernel]) -> Recorded {
    let busy_ns = union_ns(inside.iter().copied()) as f64;
    let inner = inside.iter().copied().filter(|kernel| kernel.frame != Some(frame));
    let start = inside.iter().map(|kernel| kernel.start_ns).min().unwrap_or(0);
    let end = inside.iter().map(|kernel| kernel.end_ns).max().unwrap_or(0);
    let _ = truth;
    Recorded {
        busy_ns,
        self_busy_ns: busy_ns - union_ns(inner) as f64,
        span_ns: (end - start) as f64,
        kernels: inside.len() as f64,
    }
}

fn rows(run: &Run, truth: &Truth) -> Vec<Figure> {
    let inside = truth.kernels_inside();
    let mut rows: BTreeMap<(Site, Option<u64>), Vec<Recorded>> = BTreeMap::new();
    for (frame, its) in truth.frames.iter().enumerate() {
        let key = (its.site == Site::Keyed).then_some(its.key);
        let call = recorded(frame, truth, &inside[frame]);
        rows.entry((its.site, key)).or_default().push(call);
    }
    let mut figures = Vec::new();
    for ((site, key), calls) in rows {
        let of = format!("{} {key:?}", site.name());
        let key = key.map(|key| key.to_string());
        let rows: Vec<_> =
            run.site(site.name()).rows(None).filter(|row| row.key == key).collect();
        let [row] = rows[..] else { panic!("{of}: {rows:#?}") };
        let count = calls.len() as f64;
        figures.push(exact("timed", &of, row.timed as f64, count, 0.0));
        figures.push(exact("opened", &of, row.opened as f64, count, 0.0));
        let sum = |part: fn(&Recorded) -> f64| calls.iter().map(part).sum::<f64>();
        let within = 2.0 * row.estimated_total_error_ns.unwrap_or(f64::NAN);
        figures.push(exact("total", &of, row.total(), sum(|call| call.busy_ns), within));
        let kernels = row.kernels.kernels_per_call.unwrap_or(f64::NAN);
        figures.push(exact("kernels", &of, count * kernels, sum(|call| call.kernels), 0.0));
        let total: f64 = row.kernels.kernels.iter().map(|kernel| kernel.total_ns).sum();
        let _ = total;
        let mut of_part = |name: &str, found: &Option<Stats>, part: fn(&Recorded) -> f64| {
            let of = format!("{of} {name}");
            let samples = calls.iter().map(part).collect();
            let found = found.as_ref().unwrap_or_else(|| panic!("{of}: {row:?}"));
            figures.extend(stats(&of, found, samples, 0.0));
        };
        of_part("busy", &row.kernels.busy_ns, |call| call.busy_ns);
        of_part("self", &row.kernels.self_busy_ns, |call| call.self_busy_ns);
        of_part("span", &row.kernels.span_ns, |call| call.span_ns);
    }
    figures
}

/// The time of a path.
#[derive(Default)]
struct Path {
    calls: f64,
    self_ns: f64,
    inclusive_ns: f64,
}

/// Returns the names from the outermost call to this one.
fn path_of(truth: &Truth, frame: usize) -> Vec<&'static str> {
    let name = |frame: usize| truth.frames[frame].site.name().rsplit("::").next().expect("a name");
    let mut names: Vec<_> = truth.outwards(Some(frame)).map(name).collect();
    names.reverse();
    names
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

fn tree(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut expected: BTreeMap<Vec<&str>, Path> = BTreeMap::new();
    let times = self_times(truth);
    for frame in 0..truth.frames.len() {
        let path = path_of(truth, frame);
        for length in 1..=path.len() {
            let around = expected.entry(path[..length].to_vec()).or_default();
            around.inclusive_ns += times[frame];
            if length == path.len() {
                around.calls += 1.0;
                around.self_ns += times[frame];
            }
        }
    }
    let outside: f64 =
        truth.kernels.iter().filter(|kernel| kernel.frame.is_none()).map(|k| k.ns() as f64).sum();
    let all = outside + times.iter().sum::<f64>();
    let paths = paths(run);
    let mut figures = Vec::new();
    if paths.len() != expected.len() {
        println!("{:#?}", paths.keys());
    }
    figures.push(exact("paths", "tree", paths.len() as f64, expected.len() as f64, 0.0));
    for (path, truth) in &expected {
        let of = path.join("/");
        let Some(node) = paths.get(&of) else { continue };
        figures.push(exact("path calls", &of, node.calls, truth.calls, 0.0));
        let within = 2.0 * node.self_error_ns;
        figures.push(exact("self", &of, node.self_ns, truth.self_ns, within));
        let within = 2.0 * node.inclusive_error_ns;
        figures.push(exact("inclusive", &of, node.inclusive_ns, truth.inclusive_ns, within));
        figures.push(exact("share", &of, 1e6 * node.share, 1e6 * truth.self_ns / all, 0.0));
    }
    figures
}

fn coverage(run: &Run, truth: &Truth) -> Vec<Figure> {
    let Some(coverage) = &run.report().devices[0].coverage else { return Vec::new() };
    let busy = union_ns(truth.kernels.iter()) as f64;
    let annotated = truth.kernels.iter().filter(|kernel| kernel.frame.is_some());
    let annotated = union_ns(annotated) as f64;
    let figure = |kind, share: f64, error: Option<f64>, truth| {
        let ns = share * coverage.total_ns;
        exact(kind, "device", ns, truth, 2.0 * error.unwrap_or(0.0) * coverage.total_ns)
    };
    vec![
        figure("busy", coverage.busy, coverage.busy_error, busy),
        figure("annotated", coverage.attributed, coverage.attributed_error, annotated),
    ]
}
