//! Runs in which events time everything that has a stream.

use std::collections::BTreeMap;

use gpu_time_scenarios::composition::Site;
use gpu_time_sim_driver::formula::{EMPTY_NS, fed_pair_ns};

use crate::harness::Run;
use crate::harness::report::{Device, Series};
use crate::mixed::simulated::checks::{bound, exact, rows as rows_of, stats, tree};
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::{Path, Row, Truth, add_inclusive};

/// A pair of events, and what lies between them.
struct Bracket {
    frame: usize,
    /// The time of its kernels as CUPTI would date them, with the gaps between them and without the brackets inside.
    net_ns: f64,
    /// The bracket around it on the same stream.
    parent: Option<usize>,
    /// The number of brackets inside.
    inside: f64,
}

/// Returns the time from the first kernel's start to the last one's end, if nothing else is between them.
fn net_ns(kernels: &[u64]) -> f64 {
    fed_pair_ns(kernels) as f64 - (fed_pair_ns(&[EMPTY_NS]) - EMPTY_NS) as f64
}

fn brackets(truth: &Truth) -> Vec<Bracket> {
    let inside = truth.kernels_inside();
    let mut brackets: Vec<Bracket> = Vec::new();
    let mut of_frame = BTreeMap::new();
    for (frame, inside) in inside.iter().enumerate() {
        let its = &truth.frames[frame];
        if !its.site.has_stream() {
            continue;
        }
        let around = truth.outwards(its.parent).find_map(|around| {
            let is_same = truth.frames[around].stream == its.stream;
            of_frame.get(&around).copied().filter(|_| is_same)
        });
        let on_stream = inside.iter().filter(|kernel| kernel.stream == its.stream);
        if its.site == Site::Launches {
            for kernel in on_stream.filter(|kernel| kernel.frame == Some(frame)) {
                let net_ns = net_ns(&[kernel.ns()]);
                brackets.push(Bracket { frame, net_ns, parent: around, inside: 0.0 });
            }
        } else {
            let kernels: Vec<u64> = on_stream.map(|kernel| kernel.ns()).collect();
            of_frame.insert(frame, brackets.len());
            let net_ns = net_ns(&kernels);
            brackets.push(Bracket { frame, net_ns, parent: around, inside: 0.0 });
        }
    }
    for at in 0..brackets.len() {
        let mut around = brackets[at].parent;
        while let Some(parent) = around {
            brackets[parent].inside += 1.0;
            around = brackets[parent].parent;
        }
    }
    brackets
}

/// What the report says about how far times by events may be off.
struct Stated {
    bracket_ns: f64,
    inner_ns: f64,
}

impl Stated {
    fn of(device: &Device) -> Stated {
        let inner_ns = device.event_inner_error_ns.unwrap_or(0.0);
        Stated { bracket_ns: device.event_bias_error_ns.unwrap_or(0.0), inner_ns }
    }
}

pub fn compare(run: &Run, truth: &Truth, is_late: bool) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, &true_paths(run, truth), is_late));
    figures
}

/// Returns the samples of each row by call, with how far each may be off.
pub fn true_rows(run: &Run, truth: &Truth) -> BTreeMap<Row, BTreeMap<usize, (f64, f64)>> {
    let stated = Stated::of(&run.report().devices[0]);
    let mut rows: BTreeMap<_, BTreeMap<usize, (f64, f64)>> = BTreeMap::new();
    for bracket in &brackets(truth) {
        let row = rows.entry(truth.row_of(bracket.frame)).or_default();
        let (net_ns, within) = row.entry(bracket.frame).or_default();
        *net_ns += bracket.net_ns;
        *within += stated.bracket_ns + bracket.inside * stated.inner_ns;
    }
    rows
}

fn rows(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (row, samples) in true_rows(run, truth) {
        let of = format!("{} {:?}", row.0.name(), row.1);
        let rows = rows_of(run, &row);
        let total = |part: fn(&Series) -> u64| rows.iter().map(|row| part(row)).sum::<u64>() as f64;
        let count = samples.len() as f64;
        figures.push(exact("timed", &of, total(|row| row.timed), count, 0.0));
        figures.push(exact("measured", &of, total(|row| row.measured), count, 0.0));
        let sum: f64 = samples.values().map(|(net_ns, _)| net_ns).sum();
        let within: f64 = samples.values().map(|(_, within)| within).sum();
        let most_within = samples.values().fold(0.0f64, |most, (_, within)| most.max(*within));
        let error_ns: f64 = rows.iter().filter_map(|row| row.estimated_total_error_ns).sum();
        let is_bound = rows.iter().any(|row| row.starved > 0);
        let compare = if is_bound { bound } else { exact };
        let found = rows.iter().map(|row| row.total()).sum();
        figures.push(compare("total", &of, found, sum, within + 2.0 * error_ns));
        if let [row] = rows[..]
            && let Some(net) = &row.net_ns
            && row.starved == 0
        {
            let samples = samples.values().map(|(net_ns, _)| *net_ns).collect();
            figures.extend(stats(&of, net, samples, most_within));
        }
    }
    figures
}

/// Returns the true times of all paths.
pub fn true_paths(run: &Run, truth: &Truth) -> BTreeMap<Vec<&'static str>, Path> {
    let stated = Stated::of(&run.report().devices[0]);
    let mut paths: BTreeMap<Vec<&str>, Path> = BTreeMap::new();
    for frame in (0..truth.frames.len()).filter(|&frame| truth.frames[frame].site.has_stream()) {
        // Functions without a stream are only there as callers.
        let path = truth.path_without_spans(frame);
        for length in 1..path.len() {
            paths.entry(path[..length].to_vec()).or_default();
        }
        paths.entry(path).or_default().calls += 1.0;
    }
    let brackets = brackets(truth);
    for bracket in &brackets {
        let within = stated.bracket_ns + bracket.inside * stated.inner_ns;
        let path = paths.entry(truth.path_without_spans(bracket.frame)).or_default();
        path.self_ns += bracket.net_ns;
        path.self_within += within;
        if let Some(parent) = bracket.parent {
            let around = paths.entry(truth.path_without_spans(brackets[parent].frame)).or_default();
            around.self_ns -= bracket.net_ns;
            around.self_within += within;
        }
    }
    add_inclusive(&mut paths);
    paths
}
