//! `compare`: verdicts, thresholds and exit codes.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use gpu_time_report::{Measure, Process, Series, Snapshot, value};

use crate::fixtures::{gpu, report, series, site};
use crate::opened_calls::opened;
use crate::{Folder, Run, stored, tool};

/// Builds a series with times within 1 % of `ns`.
fn around(ns: f64) -> Series {
    let times: Vec<f64> = (0..101).map(|i| ns * (0.99 + 0.0002 * f64::from(i))).collect();
    series("cuda:0", &times, &[], 1000.0)
}

fn report_of(sites: Vec<(&str, Series)>) -> Snapshot {
    let sites = sites.into_iter().map(|(name, series)| site(name, 1, vec![series])).collect();
    report(1, vec![gpu("cuda:0", "H200")], sites)
}

/// States that runs do not differ, so that one run of each program is enough.
const ALIKE: &str = "--between-runs=0%";

/// Compares one run of each program, as if runs did not differ.
fn compare(base: Vec<(&str, Series)>, new: Vec<(&str, Series)>, more: &[PathBuf]) -> Run {
    let folder = Folder::new();
    let base = folder.report("base.json", &report_of(base));
    let new = folder.report("new.json", &report_of(new));
    tool(&[&["compare".into(), ALIKE.into(), base, new], more].concat())
}

/// Merges one run for each of these times.
fn merged(folder: &Folder, name: &str, runs: &[f64]) -> PathBuf {
    let files = runs.iter().zip(1..).map(|(&ns, pid)| {
        let site = site("f", 1, vec![around(ns)]);
        let report = report(pid, vec![gpu("cuda:0", "H200")], vec![site]);
        folder.report(&format!("{name}-{pid}.json"), &report)
    });
    let files: Vec<PathBuf> = files.collect();
    let merged = folder.path(name);
    let output = ["-o".into(), merged.clone()];
    tool(&[&["merge".into()], &*files, &output].concat()).success();
    merged
}

/// The samples within each run are within 1 %, but the runs differ by 3 %.
#[test]
fn runs_that_differ_are_not_slower() {
    let folder = Folder::new();
    let base = merged(&folder, "base", &[21e3, 20e3, 20.6e3, 19.8e3, 20.2e3]);
    let noisy = merged(&folder, "noisy", &[20.8e3, 20.2e3, 21.6e3, 20.7e3, 21.1e3]);
    let run = tool(&["compare".into(), "--threshold=2%".into(), base.clone(), noisy]);
    assert_eq!(why(&run, "f"), "interval too wide", "{}", run.stdout);
    let note = "\nnote: 5 runs of the base, 5 runs of the new program\n";
    assert!(run.success().contains(note));
    let slow = merged(&folder, "slow", &[23e3, 22e3, 22.6e3, 21.8e3, 22.2e3]);
    let run = tool(&["compare".into(), "--threshold=2%".into(), base, slow]);
    assert!(row(&run, "f").ends_with(" slower"), "{}", run.stdout);
    assert_eq!(run.code, Some(1));
}

/// The workers of a server differ little, because they share the clocks and the temperature of a
/// run.
#[test]
fn simultaneous_processes_of_host_are_one_run() {
    let folder = Folder::new();
    let side = |name: &str, ns: f64, host: Option<&str>, gap: Duration| {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600);
        let files = (0..5u32).map(|i| {
            let wall = Duration::from_millis(400);
            let process = Process::new("app".to_owned(), i, started + i * gap, wall, None);
            let process = value!(Process { host: host.map(str::to_owned), ..process });
            let site = site("f", 1, vec![around(ns * (1.0 + 0.001 * f64::from(i)))]);
            let report = Snapshot::new(process, vec![gpu("cuda:0", "H200")], vec![site]);
            folder.report(&format!("{name}-{i}.json"), &report)
        });
        let files: Vec<PathBuf> = files.collect();
        let merged = folder.path(name);
        let output = ["-o".into(), merged.clone()];
        tool(&[&["merge".into()], &*files, &output].concat()).success();
        merged
    };
    let compared = |host: Option<&str>, gap: u64| {
        let gap = Duration::from_millis(gap);
        let [base, new] =
            [("base", 20e3), ("new", 21e3)].map(|(name, ns)| side(name, ns, host, gap));
        tool(&["compare".into(), base, new])
    };
    let note = "\nnote: processes of one host that ran at the same time count as one run\n";
    let together = compared(Some("node"), 100);
    assert_eq!(why(&together, "f"), "too few runs", "{}", together.stdout);
    assert!(together.stdout.contains(note), "{}", together.stdout);
    assert!(together.success().contains("\nnote: 1 run "));
    // The processes ran one after the other, or possibly on several hosts.
    for (host, gap) in [(Some("node"), 402), (None, 100)] {
        let run = compared(host, gap);
        assert!(row(&run, "f").ends_with(" slower"), "{}", run.stdout);
        assert!(run.stdout.contains("\nnote: 5 runs "), "{}", run.stdout);
        assert!(!run.stdout.contains(note), "{}", run.stdout);
    }
}

#[test]
fn one_run_of_each_needs_a_large_change() {
    let folder = Folder::new();
    let one = |name: &str, ns: f64| folder.report(name, &report_of(vec![("f", around(ns))]));
    let base = one("base", 20e3);
    let run = tool(&["compare".into(), base.clone(), one("new", 21e3)]);
    assert_eq!(why(&run, "f"), "too few runs", "{}", run.stdout);
    let note = "\nnote: 1 run of the base, 1 run of the new program: how much runs differ cannot be known \
                from one, and a standard deviation of 2% is assumed (--between-runs); merge several runs \
                of each, or use `gpu-time ab`\n";
    assert!(run.success().contains(note));
    let run = tool(&["compare".into(), base.clone(), one("new", 22e3)]);
    assert!(row(&run, "f").ends_with(" slower"), "{}", run.stdout);
    let run = tool(&["compare".into(), base, one("new", 22e3), "--between-runs=5%".into()]);
    assert_eq!(why(&run, "f"), "too few runs", "{}", run.stdout);
}

/// Two runs of one program cannot show that nothing changed, but they show how much has at most.
#[test]
fn one_run_of_each_tells_the_largest_change() {
    let folder = Folder::new();
    let of = |name: &str, all: &[(&'static str, f64)]| {
        let sites = all.iter().map(|&(name, ns)| (name, around(ns))).collect();
        folder.report(name, &report_of(sites))
    };
    let base = of("base", &[("f", 20e3), ("g", 30e3)]);
    let compared = |new: &PathBuf, more: &[&str]| {
        let more = more.iter().map(PathBuf::from);
        let options = ["compare".into(), base.clone(), new.clone()].into_iter().chain(more);
        tool(&options.collect::<Vec<_>>())
    };
    let run = compared(&base, &[]);
    assert!(row(&run, "f").contains(" -5.4% to +5.7% ") && why(&run, "f").ends_with(" 5.7%"));
    assert_eq!(counts(&run), [0, 0, 0, 2]);
    assert!(run.success().ends_with(" larger than 5.7%)\n"));
    assert_eq!(compared(&base, &["--fail-on=unknown"]).code, Some(1));
    let json = compared(&base, &["--format=json"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row_of = &json["series"][0];
    assert_eq!((&json["unknown"], &row_of["why"]), (&2.into(), &"too few runs".into()));
    assert_eq!(row_of["at_most"], row_of["interval95"][1]);
    // A larger change than the threshold is not said to be none.
    let new = of("new", &[("f", 21e3), ("g", 30e3)]);
    let run = compared(&new, &["--threshold=3%"]);
    assert_eq!(why(&run, "f"), "too few runs", "{}", run.stdout);
    assert_eq!(counts(&run), [0, 0, 0, 2]);
    assert!(run.stdout.ends_with(" 5.7%)\n") && run.stdout.contains("(1 with "));
    // The interval says nothing about runs that are taken not to differ.
    let run = compared(&base, &[ALIKE, "--threshold=0.01%"]);
    assert_eq!(why(&run, "f"), "interval too wide", "{}", run.stdout);
}

/// Returns the row of a function, with its columns separated by single spaces.
#[track_caller]
fn row(run: &Run, name: &str) -> String {
    let name = format!("{name} on ");
    let mut lines = run.stdout.lines().filter(|line| line.starts_with(&name));
    let (Some(line), None) = (lines.next(), lines.next()) else { panic!("{name}: {}", run.stdout) };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the reason for the unknown verdict of a function. Empty if another verdict is known.
#[track_caller]
fn why(run: &Run, name: &str) -> String {
    let row = row(run, name);
    row.split_once(" unknown: ").map(|(_, why)| why.to_owned()).unwrap_or_default()
}

/// Returns the numbers of slower, faster, unchanged and unknown series from the last line.
#[track_caller]
fn counts(run: &Run) -> [u32; 4] {
    let last = run.stdout.lines().last().expect("a last line");
    let mut parts = last.split(", ");
    ["slower", "faster", "the same", "unknown"].map(|verdict| {
        let (count, of) = parts.next().and_then(|part| part.split_once(' ')).expect(last);
        assert!(of.starts_with(verdict), "{last}");
        count.parse().expect(last)
    })
}

#[test]
fn slower_series_comes_first_and_exits_with_1() {
    let run = compare(
        vec![("same", around(51e3)), ("slow", around(21e3)), ("fast", around(21e3))],
        vec![("same", around(51e3)), ("slow", around(23e3)), ("fast", around(17e3))],
        &[],
    );
    assert_eq!((run.code, &*run.stderr), (Some(1), ""), "{}", run.stdout);
    assert!(row(&run, "slow").starts_with("slow on cuda:0 20.00 µs 22.00 µs +10.0% +9."));
    assert!(row(&run, "slow").ends_with(" slower") && row(&run, "fast").ends_with(" faster"));
    assert!(row(&run, "same").ends_with(" same"), "{}", run.stdout);
    assert_eq!(run.stdout.lines().nth(1).map(|line| &line[..4]), Some("slow"));
    assert_eq!(counts(&run), [1, 1, 1, 0], "{}", run.stdout);
}

#[test]
fn faster_and_same_exit_with_0() {
    let run = compare(vec![("f", around(21e3))], vec![("f", around(17e3))], &[]);
    assert!(row(&run, "f").ends_with(" faster"), "{}", run.stdout);
    assert_eq!((run.code, counts(&run)), (Some(0), [0, 1, 0, 0]));
    let run = compare(vec![("f", around(21e3))], vec![("f", around(21.5e3))], &[]);
    assert!(row(&run, "f").ends_with(" same"), "{}", run.stdout);
    assert_eq!(run.code, Some(0));
}

#[test]
fn thresholds_by_pattern() {
    let both = |factor: f64| vec![("app::f", around(20e3 * factor)), ("g", around(20e3 * factor))];
    let with = |more: &[PathBuf]| compare(both(1.0), both(1.04), more);
    assert_eq!(with(&[]).code, Some(0));
    let run = with(&["--threshold=50%".into(), "--threshold=app::*=1%".into()]);
    assert!(row(&run, "app::f").ends_with(" slower") && row(&run, "g").ends_with(" same"));
    assert_eq!(run.code, Some(1));
    let run = with(&["--threshold=2%".into()]);
    assert_eq!(counts(&run), [2, 0, 0, 0], "{}", run.stdout);
    assert!(with(&["--threshold=app::*=much".into()]).stderr.contains("such as `5%`"));
}

#[test]
fn unknown_verdict_gives_reason() {
    let few = || series("cuda:0", &[9e3; 3], &[], 1000.0);
    let starved = || series("cuda:0", &[], &[9e3; 30], 1000.0);
    let wide = |ns: f64| {
        let times: Vec<f64> = (0..24).map(|i| ns * (0.5 + 0.1 * f64::from(i * 7 % 24))).collect();
        series("cuda:0", &times, &[], 1000.0)
    };
    let none = || series("cuda:0", &[], &[], 1000.0);
    let run = compare(
        vec![("few", few()), ("starved", starved()), ("wide", wide(20e3)), ("none", none())],
        vec![
            ("few", around(20e3)),
            ("starved", around(20e3)),
            ("wide", wide(22e3)),
            ("none", none()),
        ],
        &[],
    );
    for (name, why) in [
        ("few", "too few samples"),
        ("starved", "starved"),
        ("wide", "interval too wide"),
        ("none", "no samples"),
    ] {
        assert!(row(&run, name).ends_with(&format!(" unknown: {why}")), "{}", run.stdout);
    }
    assert_eq!(run.code, Some(0));
}

#[test]
fn series_in_only_one_report_are_listed() {
    let run = compare(
        vec![("f", around(20e3)), ("gone", around(20e3))],
        vec![("f", around(20e3)), ("new\u{1b}[31m", around(20e3))],
        &[],
    );
    let gone = ["\nonly in the base: gone on cuda:0\n", ", 1 only in the base\n"];
    assert!(gone.iter().all(|line| run.stdout.contains(line)), "{}", run.stdout);
    assert!(run.stderr.starts_with("gpu-time: 1 series "), "{}", run.stderr);
    let added = "\nonly in the new report: new\\u{1b}[31m on cuda:0\n";
    assert!(run.stdout.contains(added), "{}", run.stdout);
    let line = compare(vec![("f", around(2e4))], vec![("g", around(2e4))], &[]).refusal();
    assert!(line.starts_with("cannot compare: "), "{line}");
}

#[test]
fn fail_on_unknown_and_missing() {
    let starved = || vec![("f", series("cuda:0", &[], &[9e3; 30], 1000.0)), ("g", around(2e4))];
    let code = |base, new, fail_on: &[&str]| {
        let options: Vec<PathBuf> =
            fail_on.iter().map(|what| format!("--fail-on={what}").into()).collect();
        compare(base, new, &options).code
    };
    let gone = || vec![("g", around(2e4))];
    let slower = || vec![("g", around(3e4))];
    for (fail_on, unknown, missing) in [
        (&[][..], 0, 0),
        (&["slower"], 0, 0),
        (&["unknown"], 1, 0),
        (&["missing"], 0, 1),
        (&["unknown,missing"], 1, 1),
        (&["missing", "unknown"], 1, 1),
    ] {
        assert_eq!(code(starved(), starved(), fail_on), Some(unknown), "{fail_on:?}");
        assert_eq!(code(starved(), gone(), fail_on), Some(missing), "{fail_on:?}");
        assert_eq!(code(gone(), slower(), fail_on), Some(1), "{fail_on:?}");
        assert_eq!(code(gone(), starved(), fail_on), Some(0), "{fail_on:?}");
    }
    assert_eq!(code(gone(), gone(), &["nothing"]), Some(2));
}

#[test]
fn unused_threshold_pattern_is_reported() {
    let f = || vec![("f", around(2e4))];
    let patterns = ["f=9%", "*::decoed=2%", "x=2%"].map(|one| format!("--threshold={one}").into());
    let run = compare(f(), f(), &patterns);
    let line = "gpu-time: no function matches `*::decoed`, `x`\n";
    assert_eq!((run.code, &*run.stderr), (Some(0), line));
}

#[test]
fn moved_function_is_compared() {
    let folder = Folder::new();
    let at = |file: &str, line: u32, ns: f64| {
        let launch = value!(Launch { index: 0, name: "launch".to_owned(), line: line + 4 });
        let launch =
            value!(Series { launch: Some(launch), measure: Measure::Launch, ..around(ns) });
        let site = site("f", line, vec![around(ns), launch]);
        folder.report(file, &report(1, vec![gpu("cuda:0", "H200")], vec![site]))
    };
    let run = tool(&["compare".into(), at("base", 7, 20e3), at("new", 8, 30e3)]);
    assert_eq!((run.code, &*run.stderr), (Some(1), ""), "{}", run.stdout);
    assert_eq!(counts(&run), [2, 0, 0, 0]);
    assert!(!run.stdout.contains("only in"), "{}", run.stdout);
}

#[test]
fn functions_with_equal_names_show_location() {
    let folder = Folder::new();
    let two = |file: &str, other: u32| {
        let sites = [1, other].map(|line| site("f", line, vec![around(20e3)])).to_vec();
        folder.report(file, &report(1, vec![gpu("cuda:0", "H200")], sites))
    };
    let same = tool(&["compare".into(), ALIKE.into(), two("base", 50), two("new", 50)]);
    for line in [1, 50] {
        assert!(
            row(&same, &format!("f (src/main.rs:{line})")).ends_with(" same"),
            "{}",
            same.stdout
        );
    }
}

#[test]
fn key_is_shown_once() {
    let keyed = || value!(Series { key: Some("4x4".to_owned()), ..around(20e3) });
    let run = compare(vec![("f", keyed())], vec![("f", keyed())], &[]);
    assert!(row(&run, "f").starts_with("f on cuda:0, key 4x4 19.01 µs "), "{}", run.stdout);
}

#[test]
fn different_gpu_is_noted() {
    let folder = Folder::new();
    let on = |file: &str, gpu_name: &str| {
        let site = site("f", 1, vec![around(20e3)]);
        folder.report(file, &report(1, vec![gpu("cuda:0", gpu_name)], vec![site]))
    };
    let run = tool(&["compare".into(), on("base", "H200"), on("new", "A100")]);
    assert!(run.success().contains(" from H200 to A100\n"));
}

#[test]
fn provenance_is_noted() {
    let folder = Folder::new();
    let of = |file: &str, label: Option<&str>, version: &str, uuid: &str, release: &str| {
        let owned = |text: &str| Some(text.to_owned());
        let plain = report_of(vec![("f", around(20e3))]);
        let process = value!(Process {
            label: label.map(str::to_owned),
            program_version: owned(version),
            host: owned("node"),
            ..plain.process.clone()
        });
        let gpu = value!(Device {
            uuid: owned(uuid),
            driver_release: owned(release),
            ..gpu("cuda:0", "H200")
        });
        folder.report(file, &Snapshot::new(process, vec![gpu], plain.sites.to_vec()))
    };
    let base = of("base", None, "1.4.0", "GPU-1", "570.86");
    let new = of("new", Some("fused"), "1.5.0", "GPU-2", "580.65");
    let same = tool(&["compare".into(), base.clone(), base.clone()]).success();
    assert!(!same.contains("changed"), "{same}");
    let text = tool(&["compare".into(), base, new]).success();
    let notes = "\nnote: the label changed from none to `fused`\n\
                 note: the version of the program changed from `1.4.0` to `1.5.0`\n\
                 note: cuda:0 is another GPU: GPU-1 changed to GPU-2\n\
                 note: the driver of cuda:0 changed from 570.86 to 580.65\n";
    assert!(text.contains(notes), "{text}");
}

/// The raw times are equal; only the biases subtracted from them differ.
#[test]
fn bias_difference_alone_is_unknown() {
    let folder = Folder::new();
    let with = |file: &str, source: &str, bias_ns: f64, raw_ns: f64| {
        let times: Vec<f64> = (0..101).map(|i| raw_ns * (0.999 + 0.00002 * f64::from(i))).collect();
        let site = site("f", 1, vec![series("cuda:0", &times, &[], bias_ns)]);
        let source = Some(source.to_owned());
        let event_bias_ns = Some(bias_ns);
        let gpu =
            value!(Device { event_bias_ns, event_bias_source: source, ..gpu("cuda:0", "H200") });
        folder.report(file, &report(1, vec![gpu], vec![site]))
    };
    let base = with("base", "table", 2200.0, 5e3);
    let run = |source, bias_ns, raw_ns| {
        let new = with("new", source, bias_ns, raw_ns);
        tool(&["compare".into(), ALIKE.into(), base.clone(), new])
    };
    for (bias_ns, new) in [(2000.0, "2.000"), (2400.0, "2.400")] {
        let run = run("table", bias_ns, 5e3);
        assert_eq!(why(&run, "f"), "the biases differ", "{}", run.stdout);
        let note = format!(
            "\nnote: the bias of cuda:0 changed from 2.200 µs (table) to {new} µs (table): changes within \
             that difference are ignored\n"
        );
        assert!(run.success().contains(&note));
    }
    // Nor does a bias difference raise a small change above the threshold.
    let small = run("table", 2000.0, 5.1e3);
    assert_eq!(why(&small, "f"), "the biases differ", "{}", small.stdout);
    let real = run("table", 2150.0, 6e3);
    assert!(row(&real, "f").ends_with(" slower"), "{}", real.stdout);
    let raw = run("floor", 1280.0, 5e3);
    assert!(row(&raw, "f").starts_with("f on cuda:0 5.002 µs 5.002 µs +0.0% "), "{}", raw.stdout);
    assert!(raw.success().contains(" 1.280 µs (floor): comparing raw times\n"));
    // A difference below the printed precision causes no note.
    assert!(!run("table", 2200.01, 5e3).success().contains("note"));
}

/// One more launch adds one more bias; the bias per launch is the same.
#[test]
fn more_launches_are_a_change() {
    let calls = |count: u32, ns: f64| {
        let bias_ns = 2200.0 * f64::from(count);
        let launches = value!(Launches { min: count, mean: count.into(), max: count });
        let times: Vec<f64> = (0..101).map(|i| ns + f64::from(i)).collect();
        let series = series("cuda:0", &times, &[], bias_ns);
        vec![("f", value!(Series { bias_ns: Some(2200.0), launches: Some(launches), ..series }))]
    };
    let run = compare(calls(2, 10e3), calls(3, 13e3), &[]);
    assert!(row(&run, "f").ends_with(" slower"), "{}", run.stdout);
}

#[test]
fn report_is_compared_with_itself() {
    let run = tool(&["compare".into(), stored(), stored()]);
    assert!(run.success().contains("\n0 slower, 0 faster, "));
}

/// Returns a function whose calls launch this kernel and another one.
fn with_kernel(kernel: &str, factor: f64) -> Vec<(&'static str, Series)> {
    let mut times = opened(4, &[(kernel, 2, 9_000.0), ("add", 1, 500.0)]);
    times.kernels[0].time_ns = times.kernels[0].time_ns.map(|stats| stats.map(|ns| ns * factor));
    let series = around(5000.0);
    vec![("f", value!(Series { timed: series.timed + 4, kernel_times: Some(times), ..series }))]
}

/// A library may pick other kernels that are as fast, or faster for another reason.
#[test]
fn other_kernels_are_new_or_gone() {
    let run = compare(with_kernel("gemm_64\u{1b}[31m", 1.0), with_kernel("gemm_128", 1.0), &[]);
    for (title, kernel) in [("base", "gemm_64\\u{1b}[31m"), ("new report", "gemm_128")] {
        let line = format!("note: kernels only in the {title}: f on cuda:0: {kernel}, grid 8×1×1");
        assert!(run.stdout.contains(&line), "{}", run.stdout);
    }
    assert_eq!(counts(&run), [0, 0, 1, 0], "{}", run.stdout);
    let run = compare(with_kernel("gemm", 1.0), with_kernel("gemm", 1.0), &[]);
    assert!(!run.stdout.contains("kernels only in"), "{}", run.stdout);
}

/// The function hides the change of one of its kernels, which is no reason to fail.
#[test]
fn slower_kernel_has_a_row_beside_its_function() {
    let [base, new] = [1.0, 1.3].map(|factor| with_kernel("gemm", factor));
    let run = compare(base, new, &[]);
    let row = run.stdout.lines().find(|line| line.starts_with("f on cuda:0: gemm, grid 8×1×1, "));
    let row = row.unwrap_or_else(|| panic!("{}", run.stdout));
    assert!(row.contains("+30.0%") && row.ends_with(" slower"), "{row}");
    let note = "\nnote: 2 kernels: 1 slower, 0 faster, 1 the same, 0 unknown\n";
    assert!(run.stdout.contains(note), "{}", run.stdout);
    assert_eq!((run.code, counts(&run)), (Some(0), [0, 0, 1, 0]), "{}", run.stdout);
    let json = ["--format".into(), "json".into()];
    let run = compare(with_kernel("gemm", 1.0), with_kernel("gemm", 1.3), &json);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let kernel = &json["kernels"]["series"][0];
    assert_eq!(kernel["verdict"], "slower");
}
