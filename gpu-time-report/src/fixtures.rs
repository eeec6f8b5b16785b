//! Snapshots used in tests. One of them contains a value of every kind.

use std::time::{Duration, SystemTime};

use crate::*;

/// The properties that differ between series.
#[derive(Default)]
pub struct SeriesFixture {
    device: &'static str,
    measure: Option<Measure>,
    launch: Option<Launch>,
    key: Option<String>,
    /// The estimated total and its error, if some calls were not timed.
    estimated: Option<[f64; 2]>,
    cache: Option<CacheState>,
    clock: Option<Clock>,
    graph: bool,
    times: Vec<f64>,
    /// The number of starved times, which come first.
    starved: usize,
    at_floor: u64,
    nested: u64,
    tracked: u64,
    in_flight: u64,
    lost: Vec<Lost>,
    launches: Option<[u32; 2]>,
    bytes: Option<Bytes>,
    flops: Option<Flops>,
}

pub fn row(
    device: &'static str,
    measure: Measure,
    times: impl IntoIterator<Item = u32>,
) -> SeriesFixture {
    let times = times.into_iter().map(f64::from).collect();
    let launches = (measure == Measure::Sum).then_some([2, 2]);
    SeriesFixture { device, measure: Some(measure), launches, times, ..SeriesFixture::default() }
}

fn summary(times: &[f64]) -> Summary {
    let mut distribution = Distribution::new();
    times.iter().for_each(|&ns| distribution.record(ns));
    distribution.summary()
}

/// Records one time every 10 ms.
fn course(times: &[f64]) -> Course {
    let mut course = Course::new();
    times.iter().zip(1..).for_each(|(&ns, nth)| course.record(nth * 10_000_000, ns));
    course
}

impl SeriesFixture {
    fn launch(mut self, index: u32, name: &str, line: u32) -> SeriesFixture {
        self.launch = Some(Launch { index, name: name.to_owned(), line });
        self
    }

    pub fn key(self, key: &str) -> SeriesFixture {
        SeriesFixture { key: Some(key.to_owned()), ..self }
    }

    /// Makes this a launch in a graph.
    pub fn in_graphs(self) -> SeriesFixture {
        SeriesFixture { graph: true, ..self.launch(0, "launch", 80) }
    }

    fn series(self) -> Series {
        let on_host = self.device == "host";
        let clock = self.clock.unwrap_or(if on_host { Clock::Host } else { Clock::Events });
        let bias_ns = if clock == Clock::Events { 2207.0 } else { 0.0 };
        let launches =
            self.launches.map(|[min, max]| Launches { min, mean: f64::from(min + max) / 2.0, max });
        let (starved, fed) = self.times.split_at(self.starved);
        let course = course(if fed.is_empty() { starved } else { fed });
        let [fed, starved] = [fed, starved].map(summary);
        let samples = fed.count() + starved.count();
        let mut lost = Losses::default();
        self.lost.iter().for_each(|&reason| lost.add(reason));
        let measure = self.measure.unwrap();
        let series = Series::of_samples(self.device, measure, [&fed, &starved], launches, bias_ns);
        let all_timed = series.estimated_total_ns.map(|total| [total, 0.0]);
        let estimated = self.estimated.or(all_timed).filter(|_| !self.graph);
        Series {
            launch: self.launch,
            key: self.key,
            cache: self.cache.unwrap_or(CacheState::AsFound),
            clock,
            graph: self.graph,
            timed: samples + self.at_floor + self.in_flight + lost.total(),
            measured: samples + self.at_floor,
            in_flight: self.in_flight,
            lost,
            at_floor: self.at_floor,
            nested: self.nested,
            tracked: self.tracked,
            estimated_total_ns: estimated.map(|[total, _]| total),
            estimated_total_error_ns: estimated.map(|[_, error]| error),
            timeline: course.timeline(0),
            bytes: self.bytes,
            flops: self.flops,
            ..series
        }
    }
}

pub fn site(
    name: &str,
    line: u32,
    scope: ScopeKind,
    counts: [u64; 3],
    rows: Vec<SeriesFixture>,
) -> Site {
    let [warmup, skipped, timed] = counts;
    Site {
        launches_seen: if scope == ScopeKind::Launches { 2 } else { 0 },
        calls: warmup + skipped + timed,
        warmup,
        skipped,
        timed,
        series: rows.into_iter().map(SeriesFixture::series).collect(),
        ..Site::new(name.to_owned(), "src/main.rs".to_owned(), line, scope)
    }
}

pub fn process(off: Option<&str>) -> Process {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    let wall = Duration::from_millis(1234);
    let off = off.map(str::to_owned);
    let version = "0.1.0".to_owned();
    Process { version, ..Process::new("quickstart".to_owned(), 4242, started, wall, off) }
}

/// Returns the proof for a dirty flush that left a tenth of the written lines, which is too many.
fn proof() -> FlushProof {
    let clean = Eviction {
        proved: true,
        method: "write-discard".to_owned(),
        multiple: 1,
        bytes: 62_914_560,
        lines: 1_000,
        missed_after_read: 1.0,
        missed_after_write: 1.0,
        missed_discarded: Some(1.0),
        hit_cycles: 300,
        miss_cycles: Some(700),
        threshold_cycles: 310,
    };
    let dirty = Eviction {
        proved: false,
        method: "write".to_owned(),
        missed_after_write: 0.9,
        missed_discarded: None,
        ..clean.clone()
    };
    FlushProof { clean: Some(clean), dirty: Some(dirty) }
}

pub fn gpu() -> Device {
    Device {
        driver: Some("580.159.04".to_owned()),
        l2_bytes: Some(62_914_560),
        event_step_ns: Some(32.0),
        event_floor_ns: Some(1280.0),
        event_held_empty_ns: Some(2752.0),
        event_queued_empty_ns: Some(3360.0),
        event_bias_ns: Some(2207.0),
        event_bias_source: Some("table".to_owned()),
        event_bias_error_ns: Some(640.0),
        flush_bytes: Some(62_914_560),
        flush_proof: Some(proof()),
        clocks: Some(Clocks {
            sm_start_mhz: Some(1980),
            sm_end_mhz: Some(1755),
            sm_max_mhz: Some(1980),
            mem_start_mhz: Some(3201),
            mem_end_mhz: Some(3201),
            mem_max_mhz: None,
        }),
        throttle: Some(
            [("sw_power_cap", Some(12_345_678)), ("sync_boost", Some(0)), ("hw_slowdown", None)]
                .map(|(reason, held)| (reason.to_owned(), held))
                .into(),
        ),
        temperature_c: Some(64),
        power_w: Some(698.437),
        persistence: Some(true),
        mig: Some(false),
        mps: Some(false),
        other_processes: Some(0),
        ..Device::new("cuda:0".to_owned(), "NVIDIA H200".to_owned())
    }
}

pub fn everything() -> Snapshot {
    let steps = |from: u32, count: u32| (0..count).map(move |i| from + 32 * (i % 10));
    let train = vec![
        SeriesFixture {
            cache: Some(CacheState::AfterCold),
            ..row("cuda:0", Measure::Launch, steps(21_000, 100)).launch(1, "gemm", 44)
        },
        SeriesFixture {
            cache: Some(CacheState::Cold),
            ..row("cuda:0", Measure::Launch, steps(9_000, 100)).launch(0, "launch", 40)
        },
        SeriesFixture {
            cache: Some(CacheState::Cold),
            lost: vec![Lost::Failed, Lost::Capture, Lost::Capture],
            in_flight: 2,
            ..row("cuda:0", Measure::Sum, steps(30_000, 100))
        },
    ];
    let mut train = site("app::train", 37, ScopeKind::Launches, [10, 0, 105], train);
    train.options = "warmup = 10, cold".to_owned();
    let looped =
        SeriesFixture { launches: Some([1, 3]), ..row("cuda:0", Measure::Sum, steps(8_000, 20)) };
    let saxpy = vec![
        row("host", Measure::Span, steps(2_000_000, 50)),
        SeriesFixture {
            starved: 10,
            at_floor: 1,
            nested: 3,
            tracked: 7,
            ..row("cuda:0", Measure::Span, steps(5_000, 89))
        },
    ];
    let mut saxpy = site("app::saxpy", 70, ScopeKind::Body, [0, 5, 140], saxpy);
    (saxpy.holds_released, saxpy.holds_expired) = (130, 10);
    saxpy.options = "sleep".to_owned();
    saxpy.remarks = vec![Remark::UnparsedBody];
    let decode = row("cuda:0", Measure::Launch, steps(4_000, 7)).in_graphs();
    let hostile = SeriesFixture { starved: 4, ..row("cuda:0", Measure::Span, [7_000; 4]) };
    let mut hostile = site("a,\"b\"\n\u{1b}<i>", 90, ScopeKind::Body, [0, 0, 4], vec![hostile]);
    hostile.warnings =
        vec!["`cold` had no memory for its buffer, so 4 calls ran as found".to_owned()];
    let keyed = |key, times: [u32; 3], estimated| SeriesFixture {
        estimated: Some(estimated),
        ..row("cuda:0", Measure::Span, times).key(key)
    };
    let rows = vec![
        keyed("64x64", [12_207, 12_239, 12_271], [1.2e6, 2.4e4]),
        keyed("\u{1b}[31m<b>", [52_207; 3], [4.9e6, 5e5]),
    ];
    let sampled = Site {
        unsampled: 390,
        sample_rate: 0.01,
        ..site("app::sampled", 90, ScopeKind::Body, [0, 394, 6], rows)
    };
    let sites = vec![
        train,
        site("app::looped", 60, ScopeKind::Launches, [0, 0, 20], vec![looped]),
        saxpy,
        site("app::decode", 78, ScopeKind::Launches, [0, 0, 1], vec![decode]),
        hostile,
        sampled,
        site("app::filtered", 95, ScopeKind::Body, [0, 7, 0], vec![]),
        site("app::never", 99, ScopeKind::Body, [0, 0, 0], vec![]),
    ];
    let gpu = Device { warnings: vec!["the event bias moved by +96 ns".to_owned()], ..gpu() };
    Snapshot::new(process(None), vec![gpu, Device::host()], sites)
}

/// Returns series with work of every kind, and series without.
pub fn rated() -> Snapshot {
    let bytes = |samples, per_call, total, gb_per_s| {
        Some(Bytes { samples, per_call, total, gb_per_s: Some(gb_per_s), peak_share: None })
    };
    let flops = |samples, per_call, total, tflop_per_s| {
        Some(Flops { samples, per_call, total, tflop_per_s: Some(tflop_per_s) })
    };
    let copy = SeriesFixture {
        bytes: bytes(11, Some(8e6), 88e6, 4_000.0),
        ..row("cuda:0", Measure::Span, [4_207; 11])
    };
    let gemm = SeriesFixture {
        bytes: bytes(2, Some(3e6), 6e6, 300.0),
        flops: flops(2, None, 6e9, 200.0),
        ..row("cuda:0", Measure::Span, [12_207, 22_207])
    };
    let starved = SeriesFixture {
        starved: 1,
        bytes: bytes(1, Some(1e6), 1e6, 1_000.0),
        ..row("cuda:0", Measure::Span, [3_207])
    };
    let sync = SeriesFixture {
        clock: Some(Clock::Sync),
        flops: flops(3, Some(1e9), 3e9, 50.0),
        ..row("cuda:0", Measure::Span, [20_000; 3])
    };
    let host = SeriesFixture {
        bytes: bytes(2, Some(1e6), 2e6, 1.0),
        ..row("host", Measure::Span, [1_000_000; 2])
    };
    let sites = [copy, gemm, starved, sync, host, row("cuda:0", Measure::Span, [6_207; 4])];
    let names = ["copy", "gemm", "starved", "sync", "host", "plain"];
    let site = |(row, name): (SeriesFixture, &str)| {
        let timed = row.times.len() as u64;
        site(&format!("app::{name}"), 1, ScopeKind::Body, [0, 0, timed], vec![row])
    };
    let sites = sites.into_iter().zip(names).map(site).collect();
    let gpu = Device { peak_gb_per_s: Some(5_000.0), ..gpu() };
    Snapshot::new(process(None), vec![gpu, Device::host()], sites)
}

/// Returns the report from a machine without a GPU, where the host clock times every call.
pub fn on_host() -> Snapshot {
    let timed = |name: &str, line, options: &str| {
        let rows = vec![row("host", Measure::Span, [1_000_000 * line; 50])];
        let site = site(name, line, ScopeKind::Body, [10, 0, 50], rows);
        Site { options: options.to_owned(), ..site }
    };
    let sites = vec![
        timed("app::hot", 3, "stream = v . stream () , warmup = 10 , sleep"),
        timed("app::cold", 4, "name = \"sleep, graph, x\" , cold = \"dirty\" , sleep = \"50us\""),
    ];
    Snapshot::new(process(Some("no CUDA driver was found")), vec![Device::host()], sites)
}

/// Returns the report from a machine without a driver, where calls are counted but nothing is
/// timed.
pub fn off() -> Snapshot {
    let sites = vec![
        site("app::saxpy", 70, ScopeKind::Body, [0, 145, 0], vec![]),
        site("app::never", 99, ScopeKind::Body, [0, 0, 0], vec![]),
    ];
    Snapshot::new(process(Some("no CUDA driver was found")), vec![], sites)
}
