//! The renderings of a made-up snapshot that has everything.

use std::time::{Duration, SystemTime};

use super::*;

/// What differs from one made-up row to the next.
#[derive(Default)]
struct Row {
    device: &'static str,
    measure: Option<Measure>,
    launch: Option<Launch>,
    key: Option<&'static str>,
    /// What all calls took, and its error, where not all were timed.
    estimated: Option<[f64; 2]>,
    cache: Option<CacheState>,
    clock: Option<Clock>,
    graph: bool,
    times: Vec<f64>,
    /// How many of the times, the first ones, are starved.
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

fn row(device: &'static str, measure: Measure, times: impl IntoIterator<Item = u32>) -> Row {
    let times = times.into_iter().map(f64::from).collect();
    let launches = (measure == Measure::Sum).then_some([2, 2]);
    Row { device, measure: Some(measure), launches, times, ..Row::default() }
}

fn summary(times: &[f64]) -> Summary {
    let mut distribution = Distribution::new();
    times.iter().for_each(|&ns| distribution.record(ns));
    distribution.summary()
}

/// As if a time came every 10 ms.
fn course(times: &[f64]) -> Course {
    let mut course = Course::new();
    times.iter().zip(1..).for_each(|(&ns, nth)| course.record(nth * 10_000_000, ns));
    course
}

impl Row {
    fn launch(mut self, index: u32, name: &str, line: u32) -> Row {
        self.launch = Some(Launch { index, name: name.to_owned(), line });
        self
    }

    fn series(self) -> Series {
        let on_host = self.device == "host";
        let clock = self.clock.unwrap_or(if on_host { Clock::Host } else { Clock::Events });
        let bias_ns = if clock == Clock::Events { 2207.0 } else { 0.0 };
        let [least, most] = self.launches.unwrap_or([1, 1]);
        let mean = f64::from(least + most) / 2.0;
        let (starved, fed) = self.times.split_at(self.starved);
        let summaries = [starved, fed].map(summary);
        let shown = if fed.is_empty() { &summaries[0] } else { &summaries[1] };
        let sum = |bias: f64| summaries.iter().map(|summary| summary.sum(bias)).sum();
        let stats = |bias: f64| shown.stats(bias, sum(bias));
        let samples = self.times.len() as u64;
        let measured = (samples > 0 && !self.graph).then(|| [sum(bias_ns * mean), 0.0]);
        let estimated = self.estimated.or(measured);
        let mut lost = Losses::default();
        self.lost.iter().for_each(|&reason| lost.add(reason));
        Series {
            device: self.device.to_owned(),
            launch: self.launch,
            measure: self.measure.unwrap(),
            key: self.key.map(str::to_owned),
            cache: self.cache.unwrap_or(CacheState::AsFound),
            clock,
            graph: self.graph,
            timed: samples + self.at_floor + self.in_flight + lost.total(),
            measured: samples + self.at_floor,
            in_flight: self.in_flight,
            lost,
            fed: fed.len() as u64,
            starved: starved.len() as u64,
            at_floor: self.at_floor,
            queued: 0,
            nested: self.nested,
            tracked: self.tracked,
            upper_bound: fed.is_empty() && !starved.is_empty(),
            launches: self.launches.map(|[min, max]| Launches { min, mean, max }),
            raw_ns: stats(0.0),
            net_ns: stats(bias_ns * mean).filter(|_| least == most),
            bias_ns: Some(bias_ns),
            net_sum_ns: Some(sum(bias_ns * mean)),
            estimated_total_ns: estimated.map(|[total, _]| total),
            estimated_total_error_ns: estimated.map(|[_, error]| error),
            ci95_ns: shown.median_interval(),
            histogram: shown.histogram().clone(),
            timeline: course(if fed.is_empty() { starved } else { fed }).timeline(0),
            net_histogram: Histogram::default(),
            bytes: self.bytes,
            flops: self.flops,
        }
    }
}

fn site(name: &str, line: u32, scope: ScopeKind, counts: [u64; 3], rows: Vec<Row>) -> Site {
    let [warmup, skipped, timed] = counts;
    Site {
        name: name.to_owned(),
        file: "src/main.rs".to_owned(),
        line,
        scope,
        launches_seen: if scope == ScopeKind::Launches { 2 } else { 0 },
        options: String::new(),
        calls: warmup + skipped + timed,
        warmup,
        skipped,
        unsampled: 0,
        timed,
        sample_rate: 1.0,
        warnings: Vec::new(),
        series: rows.into_iter().map(Row::series).collect(),
    }
}

fn process(off: Option<&str>) -> Process {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
    let wall = Duration::from_millis(1234);
    let off = off.map(str::to_owned);
    let version = "0.1.0".to_owned();
    Process { version, ..Process::new("quickstart".to_owned(), 4242, started, wall, off) }
}

/// As it would be where a tenth of the written lines stayed, which is too many.
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

fn gpu() -> Device {
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

pub(crate) fn everything() -> Snapshot {
    let steps = |from: u32, count: u32| (0..count).map(move |i| from + 32 * (i % 10));
    let train = vec![
        Row {
            cache: Some(CacheState::AfterCold),
            ..row("cuda:0", Measure::Launch, steps(21_000, 100)).launch(1, "gemm", 44)
        },
        Row {
            cache: Some(CacheState::Cold),
            ..row("cuda:0", Measure::Launch, steps(9_000, 100)).launch(0, "launch", 40)
        },
        Row {
            cache: Some(CacheState::Cold),
            lost: vec![Lost::Failed, Lost::Capture, Lost::Capture],
            in_flight: 2,
            ..row("cuda:0", Measure::Sum, steps(30_000, 100))
        },
    ];
    let mut train = site("app::train", 37, ScopeKind::Launches, [10, 0, 105], train);
    train.options = "warmup = 10, cold".to_owned();
    let looped = Row { launches: Some([1, 3]), ..row("cuda:0", Measure::Sum, steps(8_000, 20)) };
    let saxpy = vec![
        row("host", Measure::Span, steps(2_000_000, 50)),
        Row {
            starved: 10,
            at_floor: 1,
            nested: 3,
            tracked: 7,
            ..row("cuda:0", Measure::Span, steps(5_000, 89))
        },
    ];
    let mut saxpy = site("app::saxpy", 70, ScopeKind::Body, [0, 5, 140], saxpy);
    saxpy.options = "sleep, the body is no Rust that the macro knows: timed as a whole".to_owned();
    let decode = row("cuda:0", Measure::Launch, steps(4_000, 7)).launch(0, "launch", 80);
    let decode = Row { graph: true, ..decode };
    let hostile = Row { starved: 4, ..row("cuda:0", Measure::Span, [7_000; 4]) };
    let mut hostile = site("a,\"b\"\n\u{1b}<i>", 90, ScopeKind::Body, [0, 0, 4], vec![hostile]);
    hostile.warnings =
        vec!["`cold` had no memory for its buffer, so 4 calls ran as found".to_owned()];
    let keyed = |key: &'static str, times: [u32; 3], estimated| Row {
        key: Some(key),
        estimated: Some(estimated),
        ..row("cuda:0", Measure::Span, times)
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

/// Work of every kind, beside rows without.
pub(crate) fn rated() -> Snapshot {
    let bytes = |samples, per_call, total, gb_per_s| {
        Some(Bytes { samples, per_call, total, gb_per_s: Some(gb_per_s), peak_share: None })
    };
    let flops = |samples, per_call, total, tflop_per_s| {
        Some(Flops { samples, per_call, total, tflop_per_s: Some(tflop_per_s) })
    };
    let copy = Row {
        bytes: bytes(11, Some(8e6), 88e6, 4_000.0),
        ..row("cuda:0", Measure::Span, [4_207; 11])
    };
    let gemm = Row {
        bytes: bytes(2, Some(3e6), 6e6, 300.0),
        flops: flops(2, None, 6e9, 200.0),
        ..row("cuda:0", Measure::Span, [12_207, 22_207])
    };
    let starved = Row {
        starved: 1,
        bytes: bytes(1, Some(1e6), 1e6, 1_000.0),
        ..row("cuda:0", Measure::Span, [3_207])
    };
    let sync = Row {
        clock: Some(Clock::Sync),
        flops: flops(3, Some(1e9), 3e9, 50.0),
        ..row("cuda:0", Measure::Span, [20_000; 3])
    };
    let host =
        Row { bytes: bytes(2, Some(1e6), 2e6, 1.0), ..row("host", Measure::Span, [1_000_000; 2]) };
    let sites = [copy, gemm, starved, sync, host, row("cuda:0", Measure::Span, [6_207; 4])];
    let names = ["copy", "gemm", "starved", "sync", "host", "plain"];
    let site = |(row, name): (Row, &str)| {
        let timed = row.times.len() as u64;
        site(&format!("app::{name}"), 1, ScopeKind::Body, [0, 0, timed], vec![row])
    };
    let sites = sites.into_iter().zip(names).map(site).collect();
    let gpu = Device { peak_gb_per_s: Some(5_000.0), ..gpu() };
    Snapshot::new(process(None), vec![gpu, Device::host()], sites)
}

/// As on a machine without a driver: calls are counted, nothing is timed.
pub(crate) fn off() -> Snapshot {
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

/// Several hundred functions, most of them never called.
fn crowded() -> Snapshot {
    let name = |what: &str, i| {
        format!("model::decoder::{what}_{i}::attention::with::a::long::path::forward")
    };
    let called = (0..300u32).map(|i| {
        let rows = vec![row("cuda:0", Measure::Span, [20_000 + 100 * i; 3])];
        site(&name("layer", i), i, ScopeKind::Body, [0, 2, 3], rows)
    });
    let never = (0..200).map(|i| site(&name("other", i), i, ScopeKind::Body, [0; 3], vec![]));
    Snapshot::new(process(None), vec![gpu()], called.chain(never).collect())
}

/// The first column of the table.
fn names(table: &str) -> Vec<&str> {
    let rows = table.lines().skip_while(|line| !line.starts_with("function"));
    let rows = rows.skip(1).take_while(|line| !line.is_empty());
    rows.map(|line| line.split("  ").next().unwrap()).collect()
}

#[test]
fn hundreds_of_functions_stay_readable() {
    let snapshot = crowded();
    let table = snapshot.to_string();
    assert!(table.lines().count() < 340, "{table}");
    assert!(table.contains(" 190 more\n"), "{table}");
    assert!(table.contains("\n290 more functions had calls that were not timed: see"), "{table}");
    let mut names = names(&table);
    // By their totals.
    assert!(names[0].contains("layer_299") && names[299].contains("layer_0"), "{table}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300);
}

#[test]
fn names_are_shortened_until_the_terminal_is_wide_enough() {
    let snapshot = crowded();
    for columns in [110, 120, 140] {
        let table = snapshot.to_table(Terminal { colours: false, columns: Some(columns) });
        let mut names = names(&table);
        let rows = table.lines().skip_while(|line| !line.starts_with("function"));
        for line in rows.take_while(|line| !line.is_empty()) {
            assert!(line.chars().count() <= columns, "{line}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 300);
    }
    let wide = Terminal { colours: false, columns: Some(1000) };
    assert!(!snapshot.to_table(wide).contains('…'));
}

#[test]
fn colours_are_all_that_they_add() {
    let coloured = Terminal { colours: true, columns: None };
    for snapshot in [everything(), rated(), off(), crowded()] {
        let (plain, mut text) = (snapshot.to_string(), snapshot.to_table(coloured));
        assert_eq!(snapshot.to_table(Terminal::default()), plain);
        assert!(!plain.contains('\u{1b}'));
        while let Some(from) = text.find('\u{1b}') {
            let length = text[from..].find('m').unwrap();
            text.replace_range(from..=from + length, "");
        }
        assert_eq!(text, plain);
    }
    insta::assert_snapshot!(
        everything().to_table(coloured).escape_default().to_string().replace("\\n", "\n")
    );
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
    assert_eq!(names.len(), 10);
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
fn a_rate_is_compared_with_the_peak_of_its_device() {
    let snapshot = rated();
    let peak_share =
        |name: &str| snapshot.site(name).unwrap().series[0].bytes().unwrap().peak_share();
    assert_eq!(peak_share("app::copy"), Some(0.8));
    // The host has no peak.
    assert_eq!(peak_share("app::host"), None);
}

#[test]
fn the_json_is_read_back_as_it_was() {
    for snapshot in [everything(), rated(), off()] {
        let json = snapshot.to_json();
        let read = Snapshot::from_json(json.as_bytes()).unwrap();
        assert_eq!(read, snapshot);
        assert_eq!(read.to_json(), json);
    }
}

/// Something in every field that there is.
fn in_full() -> Snapshot {
    let mut snapshot = everything();
    snapshot.process.budget = Some(Budget { share: 0.01, cost_share: 0.008 });
    snapshot.process.merged = vec![process(None)];
    let rated = rated();
    snapshot.devices.extend(rated.devices);
    snapshot.sites.extend(rated.sites);
    for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
        series.net_histogram = series.histogram.less(2207.0);
    }
    snapshot
}

/// The text of the schema, as the package has it.
const JSON_SCHEMA: &str = include_str!("../schema/gpu-time-1.json");

fn violations(schema: &serde_json::Value, snapshot: &Snapshot) -> Vec<String> {
    let json = serde_json::from_str(&snapshot.to_json()).unwrap();
    let schema = jsonschema::draft202012::new(schema).unwrap();
    let at = |error: jsonschema::ValidationError| format!("{}: {error}", error.instance_path());
    schema.iter_errors(&json).map(at).collect()
}

#[test]
fn the_json_is_of_the_schema() {
    let schema = serde_json::from_str(JSON_SCHEMA).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    for snapshot in [in_full(), everything(), rated(), off()] {
        assert_eq!(violations(&schema, &snapshot), [""; 0]);
    }
    // Readers pass over what they do not know.
    let more = everything().to_json().replacen("\"pid\":", "\"new\": [], \"pid\":", 1);
    assert!(jsonschema::draft202012::is_valid(&schema, &serde_json::from_str(&more).unwrap()));
}

#[test]
fn the_schema_describes_every_field_and_no_other() {
    let json =
        JSON_SCHEMA.replace("\"additionalProperties\": true", "\"additionalProperties\": false");
    assert_ne!(json, JSON_SCHEMA);
    let mut schema: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut objects = vec![&mut schema];
    let mut count = 0;
    while let Some(object) = objects.pop() {
        if let Some(properties) = object.get("properties").cloned() {
            let described = |field: &serde_json::Value| {
                field["description"].is_string() || field["$ref"].is_string()
            };
            for (name, field) in properties.as_object().unwrap() {
                assert!(described(field), "{name}");
                count += 1;
            }
            // Those that are left out where they are empty as well: here none is.
            object["required"] = properties.as_object().unwrap().keys().cloned().collect();
        }
        match object {
            serde_json::Value::Object(fields) => objects.extend(fields.values_mut()),
            serde_json::Value::Array(items) => objects.extend(items),
            _ => {}
        }
    }
    assert!(count > 100, "{count}");
    // The one process that was merged is not one of merged ones.
    let violations = violations(&schema, &in_full());
    assert_eq!(violations, ["/process/merged/0: \"merged\" is a required property"]);
}

#[test]
fn fields_that_are_not_known_are_passed_over() {
    let json = everything().to_json();
    let more = json.replace("\"launches_seen\":", "\"new\": [{\"a\": null}], \"launches_seen\":");
    assert_ne!(more, json);
    assert_eq!(Snapshot::from_json(more.as_bytes()).unwrap(), everything());
}

/// Written before reports had histograms and net sums.
#[test]
fn the_first_reports_are_read() {
    let mut json: serde_json::Value = serde_json::from_str(&everything().to_json()).unwrap();
    let sites = json["sites"].as_array_mut().unwrap();
    for series in sites.iter_mut().flat_map(|site| site["series"].as_array_mut().unwrap()) {
        for field in ["histogram", "net_sum_ns"] {
            series.as_object_mut().unwrap().remove(field).unwrap();
        }
    }
    let read = Snapshot::from_json(json.to_string().as_bytes()).unwrap();
    assert!(read.sites.iter().flat_map(Site::series).all(|s| s.histogram.is_empty()));
    assert_eq!(read.to_string(), everything().to_string());
}

#[test]
fn what_is_not_read_is_named() {
    let json = off().to_json();
    let with_schema = |schema: &str| json.replacen("gpu-time/1", schema, 1);
    for (text, message) in [
        (String::new(), "the JSON ends early: EOF while parsing a value at line 1 column 0"),
        (json[..json.len() / 2].to_owned(), "the JSON ends early: EOF while parsing "),
        ("{\"schema\" 1}".to_owned(), "not JSON: expected `:` at line 1 column 11"),
        ("[1, 2]".to_owned(), "not a report of gpu-time: no `schema` says so"),
        ("{\"traceEvents\": []}".to_owned(), "not a report of gpu-time: no `schema` says so"),
        ("{\"schema\": 1}".to_owned(), "not a report of gpu-time: no `schema` says so"),
        (
            with_schema("gpu-time/2"),
            "the schema is \"gpu-time/2\", and `gpu-time/1` is what this version reads",
        ),
        (with_schema("\\u001b[2J"), "the schema is \"\\u{1b}[2J\", and `gpu-time/1` is what"),
        (
            json.replace("\"calls\"", "\"cells\""),
            "not a whole report of `gpu-time/1`: missing field `calls` at line ",
        ),
    ] {
        let error = Snapshot::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(Snapshot::from_json(b"\xff").is_err());
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
