//! The renderings of a made-up snapshot that has everything.

use std::time::{Duration, SystemTime};

use super::target::{Format, Sink, Target, deliver};
use super::*;
use crate::bias::Bias;
use crate::eviction::{Eviction, FlushProof, Pass, Passes};
use crate::sample::{CacheState, Lost, Measure, Sample};
use crate::series::{self, RowInfo};
use crate::site::{Clock, ScopeKind};
use crate::workload::{Amount, Workload};

/// What differs from one made-up row to the next.
struct Row {
    info: RowInfo,
    samples: Vec<Sample>,
    lost: Vec<Lost>,
    in_flight: u64,
    /// The bytes and operations of each sample in turn, over and over.
    work: Vec<[Option<f64>; 2]>,
}

fn row(device: &str, measure: Measure, times: impl IntoIterator<Item = u32>) -> Row {
    let on_host = device == "host";
    let sample = |ns| {
        let mut sample = Sample::new(f64::from(ns)).unwrap();
        sample.fed = true;
        sample
    };
    Row {
        info: RowInfo {
            measure,
            device: device.to_owned(),
            launch: None,
            cache: CacheState::AsFound,
            clock: if on_host { Clock::Host } else { Clock::Events },
            graph: false,
            timed: 0,
            in_flight: 0,
            bias: Some(if on_host { Bias::NONE } else { Bias { ns: 2207.0, ..Bias::NONE } }),
        },
        samples: times.into_iter().map(sample).collect(),
        lost: Vec::new(),
        in_flight: 0,
        work: Vec::new(),
    }
}

impl Row {
    fn cache(mut self, cache: CacheState) -> Row {
        self.info.cache = cache;
        self
    }

    fn launch(mut self, index: u32, name: &'static str, line: u32) -> Row {
        self.info.launch = Some(Launch { index, name, line });
        self
    }

    fn mark(mut self, mark: impl Fn(usize, &mut Sample)) -> Row {
        self.samples.iter_mut().enumerate().for_each(|(i, sample)| mark(i, sample));
        self
    }

    fn series(self) -> Series {
        let mut series = series::Series::new();
        self.samples.iter().for_each(|&sample| series.record(sample));
        for (&sample, work) in self.samples.iter().zip(self.work.iter().cycle()) {
            let [bytes, flops] = work.each_ref().map(Amount::of);
            series.record_work(sample, Workload { bytes, flops });
        }
        self.lost.iter().for_each(|&reason| series.lose(reason));
        let timed = (self.samples.len() + self.lost.len()) as u64 + self.in_flight;
        let info = RowInfo { timed, in_flight: self.in_flight, ..self.info };
        series.report(info, series.tally())
    }
}

fn site(name: &str, line: u32, scope: ScopeKind, counts: [u64; 3], rows: Vec<Row>) -> Site {
    let [warmup, skipped, timed] = counts;
    Site {
        name: name.to_owned(),
        file: "src/main.rs",
        line,
        scope,
        launches_seen: if scope == ScopeKind::Launches { 2 } else { 0 },
        options: String::new(),
        calls: warmup + skipped + timed,
        warmup,
        skipped,
        timed,
        warnings: Vec::new(),
        series: rows.into_iter().map(Row::series).collect(),
    }
}

fn process(off: Option<&str>) -> Process {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    Process {
        name: "quickstart".to_owned(),
        pid: 4242,
        version: "0.1.0",
        ..Process::new(started, Duration::from_millis(1234), off.map(str::to_owned))
    }
}

/// As it would be where a tenth of the written lines stayed, which is too many.
fn proof() -> FlushProof {
    let pass = |misses: u32| {
        let first = (0..1_000).map(|i| if i < misses { 700 } else { 310 });
        Pass::new(first.collect(), vec![300; 1_000])
    };
    let passes = |after_write| Passes {
        kept: [pass(0), pass(0)],
        after_read: pass(1_000),
        after_write: pass(after_write),
    };
    FlushProof {
        clean: Eviction::judge(1, 62_914_560, &passes(1_000)),
        dirty: Eviction::judge(1, 62_914_560, &passes(900)),
    }
}

fn gpu() -> Device {
    Device {
        driver: Some("580.159.04".to_owned()),
        l2_bytes: Some(62_914_560),
        event_step_ns: Some(32.0),
        event_floor_ns: Some(1280.0),
        event_held_empty_ns: Some(2752.0),
        event_queued_empty_ns: Some(3360.0),
        event_bias_ns: Some(2207.0),
        event_bias_source: Some("table"),
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
        throttle: Some(vec![
            ("sw_power_cap", Some(12_345_678)),
            ("sync_boost", Some(0)),
            ("hw_slowdown", None),
        ]),
        temperature_c: Some(64),
        power_w: Some(698.437),
        persistence: Some(true),
        mig: Some(false),
        mps: Some(false),
        other_processes: Some(0),
        ..Device::new("cuda:0".to_owned(), "NVIDIA H200".to_owned())
    }
}

fn everything() -> Snapshot {
    let steps = |from: u32, count: u32| (0..count).map(move |i| from + 32 * (i % 10));
    let train = vec![
        row("cuda:0", Measure::Launch, steps(21_000, 100))
            .launch(1, "gemm", 44)
            .cache(CacheState::AfterCold),
        row("cuda:0", Measure::Launch, steps(9_000, 100))
            .launch(0, "launch", 40)
            .cache(CacheState::Cold),
        Row {
            lost: vec![Lost::Failed, Lost::Capture, Lost::Capture],
            in_flight: 2,
            ..row("cuda:0", Measure::Sum, steps(30_000, 100))
        }
        .cache(CacheState::Cold)
        .mark(|_, sample| sample.brackets = 2),
    ];
    let mut train = site("app::train", 37, ScopeKind::Launches, [10, 0, 105], train);
    train.options = "warmup = 10, cold".to_owned();
    let looped = row("cuda:0", Measure::Sum, steps(8_000, 20))
        .mark(|i, sample| sample.brackets = 1 + (i as u32) % 3);
    let saxpy = vec![
        row("host", Measure::Span, steps(2_000_000, 50)),
        row("cuda:0", Measure::Span, steps(5_000, 90)).mark(|i, sample| {
            sample.fed = i % 9 != 0;
            sample.at_floor = i == 1;
            sample.nested = i < 3;
            sample.tracked = i < 7;
        }),
    ];
    let mut saxpy = site("app::saxpy", 70, ScopeKind::Body, [0, 5, 140], saxpy);
    saxpy.options = "sleep, the body is no Rust that the macro knows: timed as a whole".to_owned();
    let mut decode = row("cuda:0", Measure::Launch, steps(4_000, 7)).launch(0, "launch", 80);
    decode.info.graph = true;
    let hostile = row("cuda:0", Measure::Span, [7_000; 4]).mark(|_, sample| sample.fed = false);
    let mut hostile = site("a,\"b\"\n\u{1b}<i>", 90, ScopeKind::Body, [0, 0, 4], vec![hostile]);
    hostile.warnings =
        vec!["`cold` had no memory for its buffer, so 4 calls ran as found".to_owned()];
    let sites = vec![
        train,
        site("app::looped", 60, ScopeKind::Launches, [0, 0, 20], vec![looped]),
        saxpy,
        site("app::decode", 78, ScopeKind::Launches, [0, 0, 1], vec![decode]),
        hostile,
        site("app::filtered", 95, ScopeKind::Body, [0, 7, 0], vec![]),
        site("app::never", 99, ScopeKind::Body, [0, 0, 0], vec![]),
    ];
    let gpu = Device { warnings: vec!["the event bias moved by +96 ns".to_owned()], ..gpu() };
    Snapshot::new(process(None), vec![gpu, Device::host()], sites)
}

/// Work of every kind, beside rows without.
fn rated() -> Snapshot {
    let copy = Row { work: vec![[Some(8e6), None]], ..row("cuda:0", Measure::Span, [4_207; 11]) };
    let gemm = Row {
        work: vec![[Some(3e6), Some(2e9)], [Some(3e6), Some(4e9)]],
        ..row("cuda:0", Measure::Span, [12_207, 22_207])
    };
    let starved = Row { work: vec![[Some(1e6), None]], ..row("cuda:0", Measure::Span, [3_207]) }
        .mark(|_, sample| sample.fed = false);
    let mut sync = row("cuda:0", Measure::Span, [20_000; 3]);
    sync.info.clock = Clock::Sync;
    (sync.info.bias, sync.work) = (Some(Bias::NONE), vec![[None, Some(1e9)]]);
    let host = Row { work: vec![[Some(1e6), None]], ..row("host", Measure::Span, [1_000_000; 2]) };
    let sites = [copy, gemm, starved, sync, host, row("cuda:0", Measure::Span, [6_207; 4])];
    let names = ["copy", "gemm", "starved", "sync", "host", "plain"];
    let site = |(row, name): (Row, &str)| {
        let timed = row.samples.len() as u64;
        site(&format!("app::{name}"), 1, ScopeKind::Body, [0, 0, timed], vec![row])
    };
    let sites = sites.into_iter().zip(names).map(site).collect();
    let gpu = Device { peak_gb_per_s: Some(5_000.0), ..gpu() };
    Snapshot::new(process(None), vec![gpu, Device::host()], sites)
}

/// As on a machine without a driver: calls are counted, nothing is timed.
fn off() -> Snapshot {
    let sites = vec![
        site("app::saxpy", 70, ScopeKind::Body, [0, 145, 0], vec![]),
        site("app::never", 99, ScopeKind::Body, [0, 0, 0], vec![]),
    ];
    Snapshot::new(process(Some("no CUDA driver was found")), vec![], sites)
}

#[test]
fn the_table_shows_everything() {
    insta::assert_snapshot!(everything());
}

#[test]
fn the_table_says_why_nothing_was_timed() {
    insta::assert_snapshot!(off());
}

#[test]
fn the_table_of_a_program_without_sites_says_so() {
    let snapshot = Snapshot::new(process(None), vec![], vec![]);
    assert!(
        snapshot
            .to_string()
            .ends_with("\nno function with `#[gpu_timed]` is part of this program\n")
    );
}

#[test]
fn the_table_is_narrow_where_names_are_short() {
    let table = everything().to_string();
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("function"))
        .take_while(|line| !line.is_empty());
    for line in rows {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_json_has_everything() {
    insta::assert_snapshot!(everything().to_json());
}

#[test]
fn the_json_of_a_run_that_was_off_has_the_same_shape() {
    insta::assert_snapshot!(off().to_json());
}

#[test]
fn the_csv_has_everything() {
    insta::assert_snapshot!(everything().to_csv());
}

#[test]
fn the_csv_always_has_its_header() {
    let (all, none) = (everything().to_csv(), off().to_csv());
    assert_eq!(none.lines().collect::<Vec<_>>(), [all.lines().next().unwrap()]);
}

#[test]
fn the_csv_reads_back_what_was_hostile() {
    let csv = everything().to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.records().map(|record| record.unwrap()[0].to_owned()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(names[7], "a,\"b\"\n\u{1b}<i>");
}

#[test]
fn the_renderings_hold_no_control_characters() {
    let snapshot = everything();
    for text in [snapshot.to_string(), snapshot.to_json()] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}

#[test]
fn counts_that_do_not_add_up_are_warned_of() {
    let mut sites = vec![site(
        "app::f",
        1,
        ScopeKind::Body,
        [1, 2, 3],
        vec![row("cuda:0", Measure::Span, [9, 9])],
    )];
    sites[0].calls = 7;
    sites[0].series[0].timed = 3;
    sites[0].series[0].fed = 1;
    let broken = [
        "`app::f`: 7 calls are not 1 of warm-up + 2 skipped + 3 timed",
        "`app::f` on cuda:0: 3 timed are not 2 measured + 0 in flight + 0 lost",
        "`app::f` on cuda:0: 2 measured are not 1 fed + 0 starved + 0 at the floor",
    ];
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    assert_eq!(snapshot.process().warnings(), broken);
    for line in broken {
        assert!(snapshot.to_string().contains(&format!("\nwarning: {line}\n")));
    }
    assert_eq!(everything().inconsistencies(), Vec::<String>::new());
}

#[test]
fn every_target_gets_its_rendering() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let target = |format, name: &str| Target { format, sink: Sink::File(path(name)) };
    let snapshot = everything();
    deliver(
        &snapshot,
        &[target(Format::Table, "t"), target(Format::Json, "%p.json"), target(Format::Csv, "c")],
    );
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(read("t"), snapshot.to_string());
    assert_eq!(read(&format!("{}.json", std::process::id())), snapshot.to_json() + "\n");
    assert_eq!(read("c"), snapshot.to_csv());
}

/// Runs itself as a child, because the report goes past what a test harness captures.
#[test]
fn what_cannot_be_written_is_named_and_the_table_shown_though_stderr_is_locked() {
    const CHILD: &str = "GPU_TIME_TEST_CHILD";
    let target = Target { format: Format::Json, sink: Sink::File("/missing/report.json".into()) };
    if std::env::var_os(CHILD).is_some() {
        let (locked, when_locked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _lock = std::io::stderr().lock();
            locked.send(()).unwrap();
            std::thread::park();
        });
        when_locked.recv().unwrap();
        return deliver(&everything(), &[target.clone(), target]);
    }
    let name = std::thread::current().name().unwrap().to_owned();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", &name]).env(CHILD, "1").output().unwrap();
    let line = "gpu-time: cannot write the report to `/missing/report.json`: \
                No such file or directory (os error 2)\n";
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{line}{line}{}", everything()));
}

#[test]
fn a_device_line_is_no_longer_than_what_is_known() {
    let table = Snapshot::new(process(None), vec![Device::host()], vec![]).to_string();
    assert!(table.contains("\nhost: host clock\n"), "{table}");
}

#[test]
fn the_table_has_rates_where_any_row_does() {
    insta::assert_snapshot!(rated().to_string());
    let table = everything().to_string();
    assert!(!table.contains("GB/s") && !table.contains("TFLOP/s"), "{table}");
}

#[test]
fn a_rate_is_of_net_times_and_compared_with_the_peak() {
    let snapshot = rated();
    let series = |name: &str| &snapshot.site(name).unwrap().series[0];
    // In 4,207 ns less the bias of 2,207.
    let bytes = series("app::copy").bytes().unwrap();
    assert_eq!((bytes.per_call(), bytes.total(), bytes.samples()), (Some(8e6), 88e6, 11));
    assert_eq!((bytes.gb_per_s(), bytes.peak_share()), (Some(4_000.0), Some(0.8)));
    // By all work in all time, 10,000 + 20,000 ns.
    let flops = series("app::gemm").flops().unwrap();
    assert_eq!((flops.per_call(), flops.tflop_per_s()), (None, Some(200.0)));
    assert_eq!(series("app::sync").flops().unwrap().tflop_per_s(), Some(50.0));
    // The host has no peak.
    let bytes = series("app::host").bytes().unwrap();
    assert_eq!((bytes.gb_per_s(), bytes.peak_share()), (Some(1.0), None));
    assert_eq!((series("app::plain").bytes(), series("app::plain").flops()), (None, None));
}

#[test]
fn rates_are_in_every_rendering() {
    let snapshot = rated();
    let json: serde_json::Value = serde_json::from_str(&snapshot.to_json()).unwrap();
    let series = |site: usize| &json["sites"][site]["series"][0];
    let bytes = serde_json::json!({
        "samples": 11, "per_call": 8e6, "total": 88e6, "gb_per_s": 4_000.0, "peak_share": 0.8,
    });
    assert_eq!(series(0)["bytes"], bytes);
    let flops = serde_json::json!({
        "samples": 2, "per_call": null, "total": 6e9, "tflop_per_s": 200.0,
    });
    assert_eq!(series(1)["flops"], flops);
    assert!(series(5)["bytes"].is_null() && series(5)["flops"].is_null());
    assert_eq!(json["devices"][0]["peak_gb_per_s"], 5_000.0);
    assert_eq!(series(3)["clock"], "sync");

    let csv = snapshot.to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| &row[columns.iter().position(|column| column == name).unwrap()];
    let cells = ["bytes_per_call", "bytes_total", "gb_per_s", "peak_share", "flops_per_call"];
    assert_eq!(cells.map(cell), ["8000000", "88000000", "4000", "0.8", ""]);
    assert_eq!(["flops_total", "tflop_per_s"].map(cell), ["", ""]);
}
