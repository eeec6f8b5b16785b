//! A synthetic report with any number of series, to look at and to measure rendering with.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use gpu_time_report::{
    CacheState, Clocks, Course, Device, Distribution, Launch, Launches, Losses, Lost, Measure,
    Process, ScopeKind, Series, Site, Snapshot,
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

/// Builds the report.
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
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    let mut process = Process::new("made-up".to_owned(), 4242, started, WALL, None);
    process
        .warnings
        .push("nothing in this report was measured: it was made up to look at".to_owned());
    Snapshot::new(process, vec![device()], sites)
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

fn device() -> Device {
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
