//! Runs in which events time everything that has a stream.

use std::collections::BTreeMap;

use gpu_time_scenarios::composition::Site;
use gpu_time_sim_driver::formula::{EMPTY_NS, fed_pair_ns};

use super::{exact, stats};
use crate::harness::Run;
use crate::harness::report::Device;
use crate::harness::tree::paths;
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::Truth;

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

pub fn compare(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, truth));
    figures
}

/// A function's name and the value of its key.
fn row_of(truth: &Truth, frame: usize) -> (Site, Option<u64>) {
    let frame = &truth.frames[frame];
    (frame.site, (frame.site == Site::Keyed).then_some(frame.key))
}

fn rows(run: &Run, truth: &Truth) -> Vec<Figure> {
    let device = &run.report().devices[0];
    let stated = Stated::of(device);
    let brackets = brackets(truth);
    // For each row, the samples by call, with how far each may be off.
    let mut rows: BTreeMap<_, BTreeMap<usize, (f64, f64)>> = BTreeMap::new();
    for bracket in &brackets {
        let row = rows.entry(row_of(truth, bracket.frame)).or_default();
        let (net_ns, within) = row.entry(bracket.frame).or_default();
        *net_ns += bracket.net_ns;
        *within += stated.bracket_ns + bracket.inside * stated.inner_ns;
    }
    let mut figures = Vec::new();
    for ((site, key), samples) in rows {
        let of = format!("{} {key:?}", site.name());
        let key = key.map(|key| key.to_string());
        let rows: Vec<_> =
            run.site(site.name()).rows(None).filter(|row| row.key == key).collect();
        let [row] = rows[..] else { panic!("{of}: {rows:#?}") };
        let count = samples.len() as f64;
        figures.push(exact("timed", &of, row.timed as f64, count, 0.0));
        figures.push(exact("measured", &of, row.measured as f64, count, 0.0));
        let sum: f64 = samples.values().map(|(net_ns, _)| net_ns).sum();
        let within: f64 = samples.values().map(|(_, within)| within).sum();
        let most_within = samples.values().fold(0.0f64, |most, (_, within)| most.max(*within));
        let error_ns = row.estimated_total_error_ns.unwrap_or(f64::NAN);
        if row.starved == 0 {
            figures.push(exact("total", &of, row.total(), sum, within + 2.0 * error_ns));
            if let Some(net) = &row.net_ns {
                let samples = samples.values().map(|(net_ns, _)| *net_ns).collect();
                figures.extend(stats(&of, net, samples, most_within));
            }
        }
        figures.push(exact("starved", &of, row.starved as f64, 0.0, 0.0));
    }
    figures
}

/// The time of a path.
#[derive(Default)]
struct Path {
    calls: f64,
    self_ns: f64,
    self_within: f64,
    inclusive_ns: f64,
    within: f64,
}

/// Returns the names of the timed calls, from the outermost to this one.
fn path_of(truth: &Truth, frame: usize) -> Vec<&'static str> {
    let timed = truth.outwards(Some(frame)).filter(|&f| truth.frames[f].site.has_stream());
    let name = |frame: usize| truth.frames[frame].site.name().rsplit("::").next().expect("a name");
    let mut names: Vec<_> = timed.map(name).collect();
    names.reverse();
    names
}

fn tree(run: &Run, truth: &Truth) -> Vec<Figure> {
    let stated = Stated::of(&run.report().devices[0]);
    let mut expected: BTreeMap<Vec<&str>, Path> = BTreeMap::new();
    let brackets = brackets(truth);
    for frame in (0..truth.frames.len()).filter(|&frame| truth.frames[frame].site.has_stream()) {
        expected.entry(path_of(truth, frame)).or_default().calls += 1.0;
    }
    for bracket in &brackets {
        let within = stated.bracket_ns + bracket.inside * stated.inner_ns;
        let path = expected.get_mut(&path_of(truth, bracket.frame)).expect("it is called");
        path.self_ns += bracket.net_ns;
        path.self_within += within;
        if let Some(parent) = bracket.parent {
            let around = path_of(truth, brackets[parent].frame);
            let around = expected.get_mut(&around).expect("it is called");
            around.self_ns -= bracket.net_ns;
            around.self_within += within;
        }
    }
    for path in expected.keys().cloned().collect::<Vec<_>>() {
        let (self_ns, within) = (expected[&path].self_ns, expected[&path].self_within);
        for length in 1..=path.len() {
            // A function without a stream of its own is not on the path, so each prefix is one.
            if let Some(around) = expected.get_mut(&path[..length]) {
                around.inclusive_ns += self_ns;
                around.within += within;
            }
        }
    }
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
        let within = truth.self_within + 2.0 * node.self_error_ns;
        figures.push(exact("self", &of, node.self_ns, truth.self_ns, within));
        let within = truth.within + 2.0 * node.inclusive_error_ns;
        figures.push(exact("inclusive", &of, node.inclusive_ns, truth.inclusive_ns, within));
    }
    figures
}
