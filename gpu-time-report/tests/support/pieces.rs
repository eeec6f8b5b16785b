//! Parts of made-up reports.

use std::time::{Duration, SystemTime};

use fastrand::Rng;
use gpu_time_report::{
    CacheState, Course, Coverage, Device, Distribution, Losses, Lost, Measure, PhaseKernel,
    Process, ScopeKind, Series, Site, Snapshot, value,
};

/// The bias per bracket.
pub const BIAS_NS: f64 = 2207.0;
/// The resolution of event times.
const STEP_NS: f64 = 32.0;
/// Returns a random number, approximately normal, with mean 0 and standard deviation 1.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

pub fn coverage(busy: f64, attributed: f64) -> Coverage {
    let kernel = |name: &str, count, total_ns| {
        value!(PhaseKernel { name: name.to_owned(), count, total_ns })
    };
    let total_ns = 190.0 * 20e6;
    let kernels = vec![kernel("[copy DtoH]", 3800, 90e6), kernel("argmax_f32", 3800, 52e6)];
    value!(Coverage {
        windows: 190,
        total_ns,
        busy,
        busy_error: Some(0.006),
        idle: 1.0 - busy,
        idle_error: Some(0.006),
        attributed,
        attributed_error: Some(0.006),
        not_annotated_error: Some(0.006_f64.hypot(0.006)),
        kernels: PhaseKernel::sorted(kernels, busy * total_ns, total_ns),
    })
}

pub fn report(devices: Vec<Device>, sites: Vec<Site>, wall_ns: f64) -> Snapshot {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    let wall = Duration::from_nanos(wall_ns as u64);
    let mut process = Process::new("made-up".to_owned(), 4242, started, wall, None);
    process
        .warnings
        .push("nothing in this report was measured: it was made up to look at".to_owned());
    Snapshot::new(process, devices, sites)
}

/// The samples to generate for a series.
pub struct Made {
    pub mean_ns: f64,
    pub samples: u64,
    pub wall_ns: f64,
    pub bias_ns: f64,
    /// The share of starved samples.
    pub starved: f64,
}

/// Returns the factors by which the times of a series differ from their mean, in order.
fn factors(random: &mut Rng, at: usize, samples: u64) -> Vec<f64> {
    let noise = 0.01 + 0.06 * random.f64();
    let factor = |i: u64| {
        // Some series have two modes, some slow down during the run, and all have outliers.
        let mode = if at % 5 == 2 && random.f64() < 0.3 { 1.25 } else { 1.0 };
        let drift = if at % 7 == 3 && 5 * i > 3 * samples { 1.12 } else { 1.0 };
        let late = if random.f64() < 0.002 { 1.0 + 3.0 * random.f64() } else { 1.0 };
        mode * drift * late * (1.0 + noise * normal(random)).max(0.6)
    };
    let factors: Vec<f64> = (0..samples).map(factor).collect();
    let mean = factors.iter().sum::<f64>() / samples as f64;
    factors.into_iter().map(|factor| factor / mean).collect()
}

pub fn row(
    random: &mut Rng,
    at: usize,
    made: &Made,
    cache: CacheState,
    launch: Option<u32>,
    measure: Measure,
) -> Series {
    let Made { mean_ns, samples, wall_ns, .. } = *made;
    let count = if measure == Measure::Sum { 3 } else { 1 };
    let launches = (measure == Measure::Sum).then_some(value!(Launches {
        min: count,
        mean: f64::from(count),
        max: count,
    }));
    let bias_ns = made.bias_ns * f64::from(count);
    let (mut fed, mut starved, mut course) =
        (Distribution::new(), Distribution::new(), Course::new());
    for (i, factor) in factors(random, at, samples).into_iter().enumerate() {
        let when_ns = i as f64 / samples as f64 * wall_ns;
        let ns = ((mean_ns * factor + bias_ns) / STEP_NS).round() * STEP_NS;
        let is_starved = random.f64() < made.starved;
        if is_starved { &mut starved } else { &mut fed }.record(ns);
        course.record(when_ns as u64, ns);
    }
    let [fed, starved] = [fed.summary(), starved.summary()];
    let mut lost = Losses::default();
    (0..at % 6).for_each(|_| lost.add(Lost::Capture));
    value!(Series {
        launch: launch.map(|index| value!(Launch {
            index,
            name: "launch".to_owned(),
            line: 40 + index
        })),
        cache,
        timed: samples + lost.total(),
        lost,
        queued: fed.count() / 3,
        timeline: course.timeline(0),
        ..Series::of_samples("cuda:0", measure, [&fed, &starved], launches, made.bias_ns)
    })
}

pub fn site(name: String, line: u32, series: Vec<Series>) -> Site {
    let timed = series.iter().filter(|row| row.launch.is_none()).map(|series| series.timed).sum();
    value!(Site {
        launches_seen: 3,
        options: "warmup = 10".to_owned(),
        calls: timed + 10,
        warmup: 10,
        timed,
        series,
        ..Site::new(name, "src/model.rs".to_owned(), line, ScopeKind::Launches)
    })
}

pub fn made_up_gpu() -> Device {
    value!(Device {
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
        clocks: Some(value!(Clocks {
            sm_start_mhz: Some(1980),
            sm_end_mhz: Some(1755),
            sm_max_mhz: Some(1980),
            mem_start_mhz: Some(3201),
            mem_end_mhz: Some(3201),
            mem_max_mhz: Some(3201),
        })),
        throttle: Some(vec![("sw_power_cap".to_owned(), Some(12_345_678))].into_iter().collect()),
        temperature_c: Some(64),
        power_w: Some(431.2),
        persistence: Some(true),
        mig: Some(false),
        mps: Some(false),
        other_processes: Some(0),
        warnings: vec!["SM clock moved from 1980 to 1755 MHz while the GPU was at work".to_owned()],
        ..Device::new("cuda:0".to_owned(), "Made-up GPU".to_owned())
    })
}
