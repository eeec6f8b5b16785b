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
    kernel_times: Option<KernelTimes>,
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
        let opened = self.kernel_times.as_ref().map_or(0, |times| times.opened);
        // With this clock, recorded calls give the times, and there are no brackets.
        let of_brackets = |count| if clock == Clock::Kernels { 0 } else { count };
        // Launching takes longer than the GPU's work.
        let host_ns = self.kernel_times.as_ref().and_then(|times| {
            let ns = times.span_ns?.sum / times.opened as f64 + 15_000.0;
            let times = [0.95, 1.0, 1.1].map(|factor| (factor * ns).round());
            summary(&times).stats(0.0, ns * opened as f64)
        });
        let all_timed = series.estimated_total_ns.map(|total| [total, 0.0]);
        let estimated = self.estimated.or(all_timed).filter(|_| !self.graph);
        Series {
            launch: self.launch,
            key: self.key,
            cache: self.cache.unwrap_or(CacheState::AsFound),
            clock,
            graph: self.graph,
            timed: of_brackets(samples) + opened + self.at_floor + self.in_flight + lost.total(),
            measured: of_brackets(samples) + self.at_floor,
            fed: of_brackets(series.fed),
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
            host_ns,
            kernel_times: self.kernel_times,
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
    let [program_version, label, host] =
        ["1.4.0", "fused \u{1b}<b>", "node-7"].map(|text| Some(text.to_owned()));
    Process {
        version,
        program_version,
        label,
        host,
        ..Process::new("quickstart".to_owned(), 4242, started, wall, off)
    }
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

/// Returns the coverage of a device with 20 kernels outside of annotated functions.
pub fn coverage() -> Coverage {
    let kernel = |i: u32| PhaseKernel {
        name: format!("outside_{i}"),
        count: 400,
        total_ns: 1e6 * f64::from(20 - i),
        median_ns: Some(2_500.0 * f64::from(20 - i)),
        ..PhaseKernel::default()
    };
    let kernels = PhaseKernel::sorted((0..20).map(kernel).collect(), 560e6, 800e6);
    let mut coverage = Coverage {
        windows: 40,
        incomplete: 1,
        missed: 0,
        total_ns: 800e6,
        covered_ns: 0.0,
        busy: 0.7,
        busy_error: Some(0.005),
        idle: 0.3,
        idle_error: Some(0.005),
        attributed: 0.35,
        attributed_error: Some(0.004),
        not_annotated_error: Some(0.005_f64.hypot(0.004)),
        not_timed: 0.0,
        not_timed_error: Some(0.0),
        kernels,
    };
    coverage.bound_kernels();
    coverage
}

/// Returns the coverage of a device with this idle share, in which the only work is that of timed functions. They took
/// this share of the time.
pub fn only_functions(idle: f64, functions: f64) -> Coverage {
    Coverage { busy: functions, attributed: functions, idle, ..coverage() }
}

pub fn gpu() -> Device {
    Device {
        driver: Some("13.0".to_owned()),
        driver_release: Some("580.159.04".to_owned()),
        uuid: Some("GPU-6770752d-7469-6d65-2d73-696d2d300000".to_owned()),
        l2_bytes: Some(62_914_560),
        event_step_ns: Some(32.0),
        event_floor_ns: Some(1280.0),
        event_held_empty_ns: Some(2752.0),
        event_queued_empty_ns: Some(3360.0),
        event_inner_ns: Some(2560.0),
        event_queued_inner_ns: Some(3780.0),
        event_inner_error_ns: Some(1252.0),
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
    train.gpu_keys = vec!["cold".to_owned()];
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
    saxpy.gpu_keys = vec!["sleep".to_owned()];
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

/// Returns a report of series with work of every kind and of series without work.
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

/// Returns a kernel that each of `opened` calls launched `per_call` times. The median of its times
/// is `median`.
fn kernel(name: &str, opened: u64, per_call: u64, median: f64) -> Kernel {
    let times = [0.9, 1.0, 1.2].map(|factor| (factor * median).round());
    let count = opened * per_call;
    let sum = count as f64 * median;
    let is_kernel = !name.starts_with('[');
    Kernel {
        name: name.to_owned(),
        grid: if is_kernel { [128, 2, 1] } else { [0; 3] },
        block: if is_kernel { [256, 1, 1] } else { [0; 3] },
        registers: if is_kernel { 40 } else { 0 },
        shared_bytes: if is_kernel { 4_096 } else { 0 },
        per_call: per_call as f64,
        count,
        time_ns: summary(&times).stats(0.0, sum),
        total_ns: sum,
        share: 0.0,
    }
}

/// Returns the figures of calls that launch these kernels one after the other, with a gap of 6 µs
/// before each.
fn opened(opened: u64, mut kernels: Vec<Kernel>) -> KernelTimes {
    let total: f64 = kernels.iter().map(|kernel| kernel.total_ns).sum();
    kernels.iter_mut().for_each(|kernel| kernel.share = kernel.total_ns / total);
    kernels.sort_by(|a, b| b.total_ns.total_cmp(&a.total_ns));
    let per_call = kernels.iter().map(|kernel| kernel.per_call).sum::<f64>();
    let of_kernels = kernels.iter().filter(|kernel| kernel.grid != [0; 3]);
    let of_kernels = of_kernels.map(|kernel| kernel.per_call).sum();
    let busy = total / opened as f64;
    let gaps = 6_000.0 * (per_call - 1.0);
    let stats = |ns: f64| {
        let times = [0.95, 1.0, 1.1].map(|factor| (factor * ns).round());
        summary(&times).stats(0.0, ns * opened as f64)
    };
    KernelTimes {
        opened,
        busy_ns: stats(busy),
        self_busy_ns: stats(busy / 2.0),
        span_ns: stats(busy + gaps),
        gaps_ns: stats(gaps),
        kernels_per_call: Some(of_kernels),
        streams: Some(1),
        kernels,
        elsewhere: Vec::new(),
        zero_times: 0,
    }
}

/// The names of two kernels that only differ in the depths of their template arguments.
pub const GEMMS: [&str; 2] = [
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, \
     int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<\
     4, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, \
     cutlass::gemm::KernelTmaWarpSpecializedCooperative>, cute::tuple<cute::C<128>, cute::C<256>, \
     cute::C<64> >, cutlass::half_t, cute::tuple<long, cute::C<1>, long> >, void, void> \
     >(cutlass::gemm::kernel::GemmUniversal<>::Params)",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, \
     int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<\
     4, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, \
     cutlass::gemm::KernelTmaWarpSpecializedCooperative>, cute::tuple<cute::C<128>, cute::C<128>, \
     cute::C<64> >, cutlass::half_t, cute::tuple<long, cute::C<1>, long> >, void, void> \
     >(cutlass::gemm::kernel::GemmUniversal<>::Params)",
];

/// Returns a report with recorded calls: one function without a stream, and others that events time
/// as well.
pub fn kernels() -> Snapshot {
    let mut decode: Vec<Kernel> = GEMMS
        .into_iter()
        .zip([30, 20])
        .map(|(name, each)| kernel(name, 8, each, 4_000.0))
        .collect();
    decode.extend((0..15).map(|i| kernel(&format!("rope_{i}"), 8, 5, 600.0 + f64::from(i))));
    let mut softmax = kernel("void softmax<float, 4>(float const*, float*, int)", 8, 4, 1_500.0);
    decode.push(softmax.clone());
    softmax.grid = [64, 1, 1];
    decode.extend([softmax, kernel("[copy HtoD]", 8, 1, 700.0)]);
    let decode = opened(8, decode);
    let busy = decode.busy_ns.unwrap();
    let decode = SeriesFixture {
        clock: Some(Clock::Kernels),
        lost: vec![Lost::Records],
        in_flight: 1,
        kernel_times: Some(KernelTimes { zero_times: 2, streams: Some(3), ..decode }),
        ..row("cuda:0", Measure::Span, (0..8).map(|i| (busy.median + f64::from(i) * 32.0) as u32))
    };
    let single = |times: u32, samples: usize, kernel_ns| SeriesFixture {
        kernel_times: Some(opened(6, vec![kernel("saxpy", 6, 1, kernel_ns)])),
        launches: Some([1, 1]),
        ..row("cuda:0", Measure::Sum, vec![times; samples])
    };
    let elsewhere = |name: &str, count, why| Elsewhere {
        name: name.to_owned(),
        count,
        total_ns: 20_000.0 * count as f64,
        why,
    };
    let forked = opened(7, vec![kernel("gather", 7, 1, 9_000.0), kernel("reduce", 7, 2, 20_000.0)]);
    let forked = SeriesFixture {
        kernel_times: Some(KernelTimes {
            elsewhere: vec![
                elsewhere("reduce", 14, ElsewhereReason::OtherStream),
                elsewhere("\u{1b}late<i>", 1, ElsewhereReason::AfterStop),
            ],
            streams: Some(2),
            ..forked
        }),
        ..row("cuda:0", Measure::Span, [12_000; 60])
    };
    let sites = vec![
        site("model::decode", 10, ScopeKind::Body, [1, 0, 10], vec![decode]),
        site("app::saxpy", 20, ScopeKind::Launches, [0, 0, 96], vec![single(23_207, 90, 21_100.0)]),
        site(
            "app::biased",
            30,
            ScopeKind::Launches,
            [0, 0, 91],
            vec![single(26_207, 85, 21_100.0)],
        ),
        site("app::forked", 40, ScopeKind::Body, [0, 0, 67], vec![forked]),
    ];
    let process = Process { cupti_version: Some(130_000), ..process(None) };
    let gpu = Device { coverage: Some(coverage()), ..gpu() };
    Snapshot::new(process, vec![gpu], sites)
}

/// Returns the report from a machine without a GPU, where the host clock times every call.
pub fn on_host() -> Snapshot {
    let timed = |name: &str, line, options: &str, keys: &[&str]| {
        let rows = vec![row("host", Measure::Span, [1_000_000 * line; 50])];
        let site = site(name, line, ScopeKind::Body, [10, 0, 50], rows);
        let gpu_keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Site { options: options.to_owned(), gpu_keys, ..site }
    };
    let sites = vec![
        timed("app::hot", 3, "stream = v . stream () , warmup = 10 , sleep", &["sleep"]),
        timed(
            "app::cold",
            4,
            "name = \"sleep, graph, x\" , cold = \"dirty\" , sleep = \"50us\"",
            &["cold", "sleep"],
        ),
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
