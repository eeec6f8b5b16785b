//! Synthetic reports, to look at and to measure rendering with.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use gpu_time_report::{
    CacheState, Clocks, Course, Coverage, Device, Distribution, Launch, Launches, Losses, Lost,
    Measure, Node, PerCall, Process, ScopeKind, Series, Site, Snapshot, Source, Unattributed,
};

/// The bias per bracket.
const BIAS_NS: f64 = 2207.0;
/// The resolution of event times.
const STEP_NS: f64 = 32.0;
const WALL: Duration = Duration::from_secs(95);
const SAMPLES: u64 = 20_000;

/// Returns a random number, approximately normal, with mean 0 and standard deviation 1.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Builds the reports of four programs, to look at: small, nested, large, and on two devices.
pub fn programs() -> [(&'static str, Snapshot); 4] {
    let busy = |device: &str, busy, attributed| Device {
        id: device.to_owned(),
        coverage: Some(coverage(busy, attributed)),
        ..made_up_gpu()
    };
    let nested = report(vec![busy("cuda:0", 0.38, 0.34)], nested_sites("cuda:0"));
    let mut on_two = nested_sites("cuda:0");
    for (site, other) in on_two.iter_mut().zip(nested_sites("cuda:1")).skip(1).take(3) {
        site.calls += other.calls;
        site.timed += other.timed;
        site.warmup += other.warmup;
        site.series.extend(other.series);
    }
    let two = vec![busy("cuda:0", 0.38, 0.34), busy("cuda:1", 0.91, 0.9)];
    [
        ("small", report(vec![made_up_gpu()], nested_sites("cuda:0").split_off(3))),
        ("nested", nested.with_tree(layers())),
        ("large", with_tree(snapshot(600), 2000)),
        ("two-devices", report(two, on_two).with_tree(layers())),
    ]
}

/// Builds the functions of a small model.
fn nested_sites(device: &str) -> Vec<Site> {
    let mut random = Rng::with_seed(11);
    let medians = [1.21e6, 54_000.0, 21_000.0, 9_200.0, 4_100.0, 2_300.0];
    let sites = MODEL.into_iter().zip(medians).enumerate();
    let sites = sites.map(|(at, (name, median_ns))| {
        let states: &[_] =
            if at == 3 { &[CacheState::AsFound, CacheState::Cold] } else { &[CacheState::AsFound] };
        let rows = states.iter().zip([1.0, 1.4]).map(|(state, factor)| {
            let row = row(&mut random, at, *state, None, median_ns * factor, Measure::Span);
            Series { device: device.to_owned(), ..row }
        });
        let rows = rows.collect();
        site(name.to_owned(), 20 + 9 * at as u32, rows)
    });
    sites.collect()
}

const MODEL: [&str; 6] = [
    "model::forward",
    "model::layer",
    "model::attention",
    "model::mlp",
    "model::norm",
    "model::rope",
];

/// Builds the call tree of a small model whose host is too slow for its GPU.
fn layers() -> Vec<Node> {
    let calls = [1.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 1.0];
    let paths: [(usize, Option<u32>, f64, f64); 8] = [
        (0, None, 9_000.0, 0.74),
        (1, Some(0), 700.0, 0.7),
        (2, Some(1), 5_800.0, 0.3),
        (5, Some(2), 900.0, 0.0),
        (4, Some(1), 800.0, 0.6),
        (3, Some(1), 4_900.0, 0.02),
        (4, Some(5), 500.0, 0.0),
        (4, Some(0), 800.0, 0.0),
    ];
    let passes = 20_000.0;
    let nodes = paths.into_iter().zip(calls).map(|((at, parent, own_ns, waited), calls)| {
        let mut node = path(MODEL[at], at as u32, parent, own_ns * calls * passes);
        node.calls = calls * passes;
        let span_ns = if parent.is_none() { 1.21e6 } else { 3.0 * own_ns };
        node.per_call = Some(PerCall {
            busy_ns: span_ns * (1.0 - waited),
            span_ns,
            waited_ns: Some(span_ns * waited),
            host_ns: Some(1.1 * span_ns),
            kernels: Some(if parent.is_none() { 195.0 } else { 3.0 }),
        });
        node
    });
    nodes.collect()
}

/// Adds a call tree of this many paths over the report's functions.
pub fn with_tree(snapshot: Snapshot, paths: usize) -> Snapshot {
    let mut random = Rng::with_seed(5);
    let names: Vec<String> = snapshot.sites().iter().map(|site| site.name().to_owned()).collect();
    let nodes = (0..paths).map(|at| {
        // Most callers are recent, so that the tree is deep as well as wide.
        let from = at.saturating_sub(if at % 7 == 0 { at } else { 60 });
        let parent = (at > 8).then(|| random.usize(from..at) as u32);
        let site = random.usize(0..names.len());
        path(&names[site], site as u32, parent, 2e5 * (random.f64() * 7.0).exp())
    });
    snapshot.with_tree(nodes.collect())
}

fn path(name: &str, site: u32, parent: Option<u32>, own_ns: f64) -> Node {
    let calls = SAMPLES as f64;
    Node {
        name: name.to_owned(),
        site: Some(site),
        parent,
        recorded: SAMPLES / 16,
        calls,
        inclusive_ns: own_ns,
        inclusive_error_ns: Some(0.01 * own_ns),
        self_ns: own_ns,
        self_error_ns: Some(0.01 * own_ns),
        per_call: Some(PerCall {
            busy_ns: own_ns / calls,
            span_ns: 1.1 * own_ns / calls,
            waited_ns: Some(0.0),
            host_ns: Some(0.3 * own_ns / calls),
            kernels: Some(3.0),
        }),
        ..Node::of(Source::Opened)
    }
}

fn coverage(busy: f64, attributed: f64) -> Coverage {
    let kernel = |name: &str, count, total_ns| Unattributed {
        name: name.to_owned(),
        count,
        total_ns,
        share: 0.0,
        per_s: 0.0,
    };
    let total_ns = 190.0 * 20e6;
    let kernels = vec![kernel("[copy DtoH]", 3800, 90e6), kernel("argmax_f32", 3800, 52e6)];
    Coverage {
        windows: 190,
        incomplete: 0,
        total_ns,
        busy,
        busy_error: Some(0.006),
        idle: 1.0 - busy,
        idle_error: Some(0.006),
        attributed,
        attributed_error: Some(0.006),
        unattributed: Unattributed::largest(kernels, busy * total_ns, total_ns),
    }
}

/// Builds a report with this many series.
pub fn snapshot(series: usize) -> Snapshot {
    const VERBS: [&str; 8] =
        ["attention", "gemm", "layer_norm", "softmax", "rope", "all_reduce", "gather", "sample"];
    const MODULES: [&str; 5] =
        ["model::decoder", "model::encoder", "train::step", "infer", "ops::fused"];
    // A fixed seed, so that the page is the same every time.
    let mut random = Rng::with_seed(7);
    let mut sites = Vec::new();
    let mut left = series;
    while left > 0 {
        let at = sites.len();
        let name = format!("{}::{}_{at}", MODULES[at % MODULES.len()], VERBS[at % VERBS.len()]);
        let rows = rows(&mut random, at, left.min(6));
        left -= rows.len();
        sites.push(site(name, at as u32, rows));
    }
    sites.push(site("model::never_called".to_owned(), 7, Vec::new()));
    report(vec![made_up_gpu()], sites)
}

/// Builds a report of this many functions with a series each, and of a tenth as many with `keys` of
/// them. Their samples are those of a few.
pub fn many(functions: usize, keys: usize) -> Snapshot {
    let mut random = Rng::with_seed(13);
    let rows: Vec<_> = (0..16).map(|at| rows(&mut random, 4 * at + 3, 1)).collect();
    let sites = (0..functions).map(|at| {
        let rows = rows[at % rows.len()].clone();
        let keyed = |key: usize| {
            let of_key = |row: &Series| Series { key: Some(format!("{key}x1024")), ..row.clone() };
            rows.iter().map(of_key).collect::<Vec<_>>()
        };
        let rows = if at % 10 == 0 { (0..keys).flat_map(keyed).collect() } else { rows.clone() };
        site(format!("generated::module_{}::function_{at}", at % 100), at as u32, rows)
    });
    report(vec![made_up_gpu()], sites.collect())
}

/// Adds a call tree of this many paths, nested so deep.
pub fn with_deep_tree(snapshot: Snapshot, paths: usize, depth: usize) -> Snapshot {
    let sites = snapshot.sites();
    let nodes = (0..paths).map(|at| {
        let site = at % sites.len();
        let parent = (at % depth > 0).then(|| at as u32 - 1);
        path(sites[site].name(), site as u32, parent, 1e6 + at as f64)
    });
    let nodes = nodes.collect();
    snapshot.with_tree(nodes)
}

fn report(devices: Vec<Device>, sites: Vec<Site>) -> Snapshot {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    let mut process = Process::new("made-up".to_owned(), 4242, started, WALL, None);
    process
        .warnings
        .push("nothing in this report was measured: it was made up to look at".to_owned());
    Snapshot::new(process, devices, sites)
}

/// Returns the series of one function: plain, hot and cold, or with launches.
fn rows(random: &mut Rng, at: usize, most: usize) -> Vec<Series> {
    let median_ns = 3000.0 * (random.f64() * 7.0).exp();
    let mut plain = |cache, launch: Option<u32>, median_ns, measure| {
        row(random, at, cache, launch, median_ns, measure)
    };
    match at % 4 {
        0 if most >= 4 => vec![
            plain(CacheState::AsFound, None, median_ns, Measure::Sum),
            plain(CacheState::AsFound, Some(0), 0.2 * median_ns, Measure::Launch),
            plain(CacheState::AsFound, Some(1), 0.7 * median_ns, Measure::Launch),
            plain(CacheState::AsFound, Some(2), 0.1 * median_ns, Measure::Launch),
        ],
        1 if most >= 2 => vec![
            plain(CacheState::AsFound, None, median_ns, Measure::Span),
            plain(CacheState::Cold, None, 1.4 * median_ns, Measure::Span),
        ],
        _ => vec![plain(CacheState::AsFound, None, median_ns, Measure::Span)],
    }
}

fn row(
    random: &mut Rng,
    at: usize,
    cache: CacheState,
    launch: Option<u32>,
    median_ns: f64,
    measure: Measure,
) -> Series {
    let count = if measure == Measure::Sum { 3 } else { 1 };
    let launches = (measure == Measure::Sum).then_some(Launches {
        min: count,
        mean: f64::from(count),
        max: count,
    });
    let bias_ns = BIAS_NS * f64::from(count);
    let (mut fed, mut starved, mut course) =
        (Distribution::new(), Distribution::new(), Course::new());
    let noise = 0.01 + 0.06 * random.f64();
    let is_starved = at % 9 == 5;
    for i in 0..SAMPLES {
        let when = i as f64 / SAMPLES as f64;
        // Some series have two modes, some slow down during the run, and all have outliers.
        let mode = if at % 5 == 2 && random.f64() < 0.3 { 1.25 } else { 1.0 };
        let drift = if at % 7 == 3 && when > 0.6 { 1.12 } else { 1.0 };
        let late = if random.f64() < 0.002 { 1.0 + 3.0 * random.f64() } else { 1.0 };
        let ns =
            median_ns * mode * drift * late * (1.0 + noise * normal(random)).max(0.6) + bias_ns;
        let ns = (ns / STEP_NS).round() * STEP_NS;
        let is_starved = is_starved || random.f64() < 0.01;
        if is_starved { &mut starved } else { &mut fed }.record(ns);
        course.record((when * WALL.as_nanos() as f64) as u64, ns);
    }
    let [fed, starved] = [fed.summary(), starved.summary()];
    let mut lost = Losses::default();
    (0..at % 6).for_each(|_| lost.add(Lost::Capture));
    let samples = [&fed, &starved];
    Series {
        launch: launch.map(|index| Launch { index, name: "launch".to_owned(), line: 40 + index }),
        cache,
        timed: SAMPLES + lost.total(),
        lost,
        queued: fed.count() / 3,
        timeline: course.timeline(0),
        ..Series::of_samples("cuda:0", measure, samples, launches, BIAS_NS)
    }
}

fn site(name: String, line: u32, series: Vec<Series>) -> Site {
    let timed = series.iter().filter(|row| row.launch().is_none()).map(Series::timed).sum();
    Site {
        launches_seen: 3,
        options: "warmup = 10".to_owned(),
        calls: timed + 10,
        warmup: 10,
        timed,
        series,
        ..Site::new(name, "src/model.rs".to_owned(), line, ScopeKind::Launches)
    }
}

fn made_up_gpu() -> Device {
    Device {
        driver: Some("13.0".to_owned()),
        l2_bytes: Some(60 << 20),
        peak_gb_per_s: Some(4800.0),
        event_step_ns: Some(STEP_NS),
        event_floor_ns: Some(1344.0),
        event_bias_ns: Some(BIAS_NS),
        event_bias_source: Some("table".to_owned()),
        event_bias_error_ns: Some(704.0),
        fed_margin_ns: Some(1800.0),
        flush_bytes: Some(60 << 20),
        clocks: Some(Clocks {
            sm_start_mhz: Some(1980),
            sm_end_mhz: Some(1755),
            sm_max_mhz: Some(1980),
            mem_start_mhz: Some(3201),
            mem_end_mhz: Some(3201),
            mem_max_mhz: Some(3201),
        }),
        throttle: Some(vec![("sw_power_cap".to_owned(), Some(12_345_678))].into_iter().collect()),
        temperature_c: Some(64),
        power_w: Some(431.2),
        persistence: Some(true),
        mig: Some(false),
        mps: Some(false),
        other_processes: Some(0),
        warnings: vec!["SM clock moved from 1980 to 1755 MHz while the GPU was at work".to_owned()],
        ..Device::new("cuda:0".to_owned(), "Made-up GPU".to_owned())
    }
}
