//! Synthetic reports, to view and to measure rendering with.

#[path = "pieces.rs"]
mod pieces;
#[path = "programs.rs"]
mod programs;

use fastrand::Rng;
use gpu_time_report::{
    CacheState, Kernel, KernelTimes, Measure, Node, Series, Site, Snapshot, Source, Stats, value,
};

use pieces::{BIAS_NS, Made, made_up_gpu, report, row, site};

/// The wall time, which is long enough to fill all slots of a timeline.
const WALL_NS: f64 = 137e9;
/// The share of the time for which a large program keeps the GPU busy.
const BUSY: f64 = 0.67;
const SAMPLES: u64 = 20_000;

/// Builds the reports of programs for viewing, by name.
pub fn programs() -> Vec<(&'static str, Snapshot)> {
    let mut all = programs::all();
    all.push(("small", report(vec![made_up_gpu()], rows_without_tree(), WALL_NS)));
    all.push(("large", large(600, 2000)));
    all
}

/// Builds a few functions that do not call each other.
fn rows_without_tree() -> Vec<Site> {
    let mut random = Rng::with_seed(11);
    let named = |(at, name): (usize, &str)| {
        site(name.to_owned(), at as u32, rows(&mut random, at, 4, 30_000.0))
    };
    ["app::train", "app::gather", "app::saxpy"].into_iter().enumerate().map(named).collect()
}

/// Builds a report of this many series and a call tree of this many paths with the same totals as
/// the rows.
pub fn large(series: usize, paths: usize) -> Snapshot {
    const VERBS: [&str; 8] =
        ["attention", "gemm", "layer_norm", "softmax", "rope", "all_reduce", "gather", "sample"];
    const MODULES: [&str; 5] =
        ["model::decoder", "model::encoder", "train::step", "infer", "ops::fused"];
    // A fixed seed, so that the page is the same every time.
    let mut random = Rng::with_seed(7);
    let mut sizes = Vec::new();
    let mut left = series;
    while left > 0 {
        sizes.push(left.min(6));
        left -= shape(sizes.len() - 1, left.min(6)).len();
    }
    let name =
        |at: usize| format!("{}::{}_{at}", MODULES[at % MODULES.len()], VERBS[at % VERBS.len()]);
    let names: Vec<String> = (0..sizes.len()).map(name).collect();
    let mut nodes = random_tree(&mut random, &names, paths);
    let total_ns: f64 = nodes.iter().map(|node| node.self_ns).sum();
    nodes.iter_mut().for_each(|node| node.self_ns *= BUSY * WALL_NS / total_ns);
    let inclusive = inclusive_by_site(&nodes, names.len());
    let sites = names.into_iter().zip(sizes).enumerate().map(|(at, (name, most))| {
        site(name, at as u32, rows(&mut random, at, most, inclusive[at] / SAMPLES as f64))
    });
    let mut sites: Vec<Site> = sites.collect();
    sites.push(site("model::never_called".to_owned(), 7, Vec::new()));
    report(vec![made_up_gpu()], sites, WALL_NS).with_tree(nodes)
}

/// Builds a call tree in which every function has a path.
fn random_tree(random: &mut Rng, names: &[String], paths: usize) -> Vec<Node> {
    let nodes = (0..paths).map(|at| {
        // Most callers are recent, so that the tree is deep as well as wide.
        let from = at.saturating_sub(if at % 7 == 0 { at } else { 60 });
        let parent = (at > 8).then(|| random.usize(from..at));
        let site = if at < names.len() { at } else { random.usize(0..names.len()) };
        path(&names[site], site, parent, (random.f64() * 7.0).exp())
    });
    nodes.collect()
}

/// Returns the sum of the inclusive times of each function's paths.
fn inclusive_by_site(nodes: &[Node], sites: usize) -> Vec<f64> {
    let mut inclusive: Vec<f64> = nodes.iter().map(|node| node.self_ns).collect();
    for (at, node) in nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            inclusive[parent] += inclusive[at];
        }
    }
    let mut of_site = vec![0.0; sites];
    for (node, ns) in nodes.iter().zip(inclusive) {
        of_site[node.site.expect("each has a function")] += ns;
    }
    of_site
}

fn path(name: &str, site: usize, parent: Option<usize>, own_ns: f64) -> Node {
    let calls = SAMPLES as f64;
    value!(Node {
        name: name.to_owned(),
        site: Some(site),
        parent,
        recorded: SAMPLES / 16,
        calls,
        inclusive_ns: own_ns,
        inclusive_error_ns: Some(0.01 * own_ns),
        self_ns: own_ns,
        self_error_ns: Some(0.01 * own_ns),
        per_call: Some(value!(PerCall {
            busy_ns: own_ns / calls,
            span_ns: 1.1 * own_ns / calls,
            waited_ns: Some(0.0),
            host_ns: Some(0.3 * own_ns / calls),
            kernels: Some(3.0),
        })),
        ..Node::of(Source::Opened)
    })
}

/// Builds a report of this many functions, most of them with a single series and one in ten with
/// `keys` of them. The samples are those of 16 generated functions.
pub fn many(functions: usize, keys: usize) -> Snapshot {
    let mut random = Rng::with_seed(13);
    let mut mean_ns = || 3000.0 * (random.f64() * 7.0).exp();
    let means: Vec<f64> = (0..16).map(|_| mean_ns()).collect();
    let rows: Vec<_> = (0..16).map(|at| rows(&mut random, 4 * at + 3, 1, means[at])).collect();
    let sites = (0..functions).map(|at| {
        let rows = rows[at % rows.len()].clone();
        let keyed = |key: usize| {
            let of_key =
                |row: &Series| value!(Series { key: Some(format!("{key}x1024")), ..row.clone() });
            rows.iter().map(of_key).collect::<Vec<_>>()
        };
        let rows = if at % 10 == 0 { (0..keys).flat_map(keyed).collect() } else { rows.clone() };
        site(format!("generated::module_{}::function_{at}", at % 100), at as u32, rows)
    });
    report(vec![made_up_gpu()], sites.collect(), WALL_NS)
}

/// Turns a fiftieth of each function's samples into recorded calls with this many different kernels,
/// of which functions share most.
pub fn with_kernels(snapshot: &Snapshot, each: usize) -> Snapshot {
    let mut sites = snapshot.sites.to_vec();
    for (at, site) in sites.iter_mut().enumerate() {
        for series in site.series.iter_mut().filter(|series| series.launch.is_none()) {
            let Some(stats) = series.net_ns.as_ref().copied() else { continue };
            let kernels = (0..each).map(|i| kernel(at, i, &stats));
            series.kernel_times = Some(value!(KernelTimes {
                opened: SAMPLES / 50,
                busy_ns: Some(stats),
                self_busy_ns: Some(stats),
                span_ns: Some(stats),
                gaps_ns: Some(stats),
                kernels_per_call: Some(each as f64),
                streams: Some(1),
                kernels: kernels.collect(),
                ..KernelTimes::default()
            }));
            series.host_ns = Some(stats);
        }
    }
    let (process, devices) = (snapshot.process.clone(), snapshot.devices.to_vec());
    Snapshot::new(process, devices, sites).with_tree(snapshot.tree.to_vec())
}

/// Builds the `i`-th kernel of the `at`-th function, whose calls have these times.
fn kernel(at: usize, i: usize, of_call: &Stats) -> Kernel {
    const SHAPES: usize = 3;
    let name = (7 * at + i) / SHAPES % 300;
    let share = 1.0 / (i + 2) as f64;
    let count = SAMPLES / 50;
    value!(Kernel {
        name: format!(
            "void gemvx::kernel<int, int, float, float, float, float, false, true, true, false, {name}, false, \
             cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, float> >"
        ),
        grid: [132 + i as u32, 1 + i as u32 % SHAPES as u32, 1],
        block: [256, 1, 1],
        registers: 96,
        shared_bytes: 49_152,
        per_call: 1.0,
        count,
        time_ns: Some(value!(Stats {
            p5: share * of_call.p5,
            median: share * of_call.median,
            ..*of_call
        })),
        total_ns: share * of_call.mean * count as f64,
        share,
    })
}

/// Adds a call tree of this many paths, nested to this depth.
pub fn with_deep_tree(snapshot: Snapshot, paths: usize, depth: usize) -> Snapshot {
    let sites = &snapshot.sites;
    let nodes = (0..paths).map(|at| {
        let site = at % sites.len();
        let parent = (at % depth > 0).then(|| at - 1);
        path(&sites[site].name, site, parent, 1e6 + at as f64)
    });
    let nodes = nodes.collect();
    snapshot.with_tree(nodes)
}

/// Returns the cache state, launch, measure and relative mean of each series of a function. A
/// function is plain, hot and cold, or has launches.
fn shape(at: usize, most: usize) -> Vec<(CacheState, Option<u32>, Measure, f64)> {
    use CacheState::{AsFound, Cold};
    match at % 4 {
        0 if most >= 4 => vec![
            (AsFound, None, Measure::Sum, 1.0),
            (AsFound, Some(0), Measure::Launch, 0.2),
            (AsFound, Some(1), Measure::Launch, 0.7),
            (AsFound, Some(2), Measure::Launch, 0.1),
        ],
        1 if most >= 2 => {
            vec![
                (AsFound, None, Measure::Span, 5.0 / 12.0),
                (Cold, None, Measure::Span, 7.0 / 12.0),
            ]
        }
        _ => vec![(AsFound, None, Measure::Span, 1.0)],
    }
}

/// Returns the series of one function, whose means add up to `mean_ns` without the launches.
fn rows(random: &mut Rng, at: usize, most: usize, mean_ns: f64) -> Vec<Series> {
    let series = shape(at, most).into_iter().map(|(cache, launch, measure, of_mean)| {
        let starved = if at % 9 == 5 { 1.0 } else { 0.01 };
        let made = Made {
            mean_ns: of_mean * mean_ns,
            samples: SAMPLES,
            wall_ns: WALL_NS,
            bias_ns: BIAS_NS,
            starved,
        };
        row(random, at, &made, cache, launch, measure)
    });
    series.collect()
}
