//! Comparisons that several settings of recording share.

use std::collections::BTreeMap;

use gpu_time_scenarios::composition::Site;

use super::figures::{Figure, LATE};
use super::truth::{Path, Row};
use crate::harness::Run;
use crate::harness::report::{Series, Stats};
use crate::harness::tree::paths;

/// The resolution of single-precision times and of sums.
pub const ROUNDING: f64 = 1.0;
/// The resolution of the times behind quantiles: half of a device's step, and part of the time.
pub const STEP_NS: f64 = 16.0;
pub const RESOLUTION: f64 = 1.0 / 2_048.0;

/// Returns `true` if this path begins with `around`.
pub fn path_has(path: &str, around: &[&str]) -> bool {
    path.split('/').zip(around).filter(|(one, other)| one == *other).count() == around.len()
}

/// Compares all paths of the call tree, which has the same paths. `is_late` if the GPU waits for the host inside of
/// calls.
pub fn tree(run: &Run, expected: &BTreeMap<Vec<&str>, Path>, is_late: bool) -> Vec<Figure> {
    let paths = paths(run);
    let is_function = |path: &&String| !path.starts_with('<');
    let count = paths.keys().filter(is_function).count() as f64;
    let mut figures = vec![exact("paths", "tree", count, expected.len() as f64, 0.0)];
    let all_ns: f64 = run.report().tree.iter().map(|node| node.self_ns).sum();
    for (path, truth) in expected {
        let of = path.join("/");
        let Some(node) = paths.get(&of) else { continue };
        figures.push(exact("path calls", &of, node.calls, truth.calls, 0.0));
        let share = 1e6 * node.self_ns / all_ns;
        figures.push(exact("share, in millionths", &of, 1e6 * node.share, share, 0.0));
        if is_late {
            // Waits of up to 5 % have no mark.
            let within = truth.self_within + 0.05 * truth.self_ns;
            let compare = if node.upper_bound { bound } else { exact };
            figures.push(compare(LATE, &of, node.self_ns, truth.self_ns, within));
            continue;
        }
        let compare = if node.upper_bound { bound } else { exact };
        let within = truth.self_within + 2.0 * node.self_error_ns;
        figures.push(compare("self", &of, node.self_ns, truth.self_ns, within));
        // A bound of what is inside is one of the whole.
        let is_bound = paths.iter().any(|(of, node)| path_has(of, path) && node.upper_bound);
        let compare = if is_bound { bound } else { exact };
        let within = truth.inclusive_within + 2.0 * node.inclusive_error_ns;
        figures.push(compare("inclusive", &of, node.inclusive_ns, truth.inclusive_ns, within));
    }
    figures
}

/// Returns the rows of a function on a GPU. There is one for each state of the cache.
pub fn rows<'a>(run: &'a Run, (site, key): &Row) -> Vec<&'a Series> {
    let key = key.map(|key| key.to_string());
    // A span that no phase met is not in the report.
    let rows = run.report().sites.iter().filter(|of| of.name == site.name());
    let rows = rows.flat_map(|site| site.rows(None));
    let rows: Vec<_> = rows.filter(|row| row.key == key && row.device != "host").collect();
    assert!(rows.len() <= 1 || *site == Site::Cold, "{rows:#?}");
    rows
}

/// A figure that is an upper bound.
pub fn bound(kind: &'static str, of: &str, found: f64, truth: f64, within: f64) -> Figure {
    Figure { most: f64::INFINITY, ..exact(kind, of, found, truth, within) }
}

/// Compares the statistics of a row whose calls were all timed. `within` is how far each sample may be off.
pub fn stats(of: &str, found: &Stats, mut samples: Vec<f64>, within: f64) -> Vec<Figure> {
    samples.sort_by(f64::total_cmp);
    let last = samples.len() - 1;
    // Quantiles have several definitions, which differ by less than a rank.
    let figure = |kind, found, share: f64| {
        let rank = share * last as f64;
        let (least, most) = (
            samples[(rank - 1.0).max(0.0) as usize],
            samples[(rank.ceil() as usize + 1).min(last)],
        );
        // Half the width of a bucket, which is 0.4 % of times above 1 ms.
        let resolution = if found < 1e6 { RESOLUTION } else { 2e-3 };
        let within = within + STEP_NS + resolution * found;
        Figure { kind, of: of.to_owned(), found, least, most, within }
    };
    let sum: f64 = samples.iter().sum();
    let mut figures = vec![
        figure("p5", found.p5, 0.05),
        figure("median", found.median, 0.5),
        figure("p95", found.p95, 0.95),
        figure("p99", found.p99, 0.99),
    ];
    for (kind, found, truth, within) in [
        ("min", found.min, samples[0], within),
        ("max", found.max, samples[last], within),
        ("mean", found.mean, sum / samples.len() as f64, within),
        ("sum", found.sum, sum, within * samples.len() as f64),
    ] {
        figures.push(exact(kind, of, found, truth, within));
    }
    figures
}

pub fn exact(kind: &'static str, of: &str, found: f64, truth: f64, within: f64) -> Figure {
    let within = within + ROUNDING + 1e-6 * truth.abs();
    Figure { kind, of: of.to_owned(), found, least: truth, most: truth, within }
}
