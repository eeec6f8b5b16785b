//! Tests that run without a GPU, on the simulated driver. For the `truth` role, CUPTI is replaced
//! by a stand-in that reads the driver's trace.

use std::path::Path;
use std::process::{Command, Output};

use gpu_time_sim_driver::{SimDriver, formula};
use serde_json::Value;

const ACCURACY: &str = env!("CARGO_BIN_EXE_accuracy");

/// A model with a small L2, which can be flushed quickly.
const SMALL_L2: &str = "l2_bytes=1048576,l2_usable_bytes=983040";

/// Runs the program with the simulated driver. It has no device unless `has_gpu` is set.
fn run(arguments: &[&str], dir: &Path, has_gpu: bool) -> Output {
    run_on("", arguments, dir, has_gpu)
}

fn run_on(model: &str, arguments: &[&str], dir: &Path, has_gpu: bool) -> Output {
    let sim = SimDriver::install(dir).unwrap().model(model).traced().commands_only();
    let mut command = Command::new(ACCURACY);
    sim.apply(&mut command).args(arguments).env("GPU_TIME_REPORT", "none");
    if !has_gpu {
        command.env_remove("GPU_TIME_TEST_SIM");
    }
    command.output().unwrap()
}

/// Runs a role and returns the JSON that it prints.
fn role(arguments: &[&str], dir: &Path) -> Value {
    parse(run(arguments, dir, true))
}

fn parse(output: Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn ours(arguments: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    parse(run_on(SMALL_L2, arguments, dir.path(), true))
}

/// Compiles the CUPTI stand-in into the driver's folder. It is optimised, because a flush parses whatever several
/// threads have launched since the last one.
fn install_cupti(dir: &Path) {
    let mut compile = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.args([
        "--edition",
        "2024",
        "-O",
        "--crate-type",
        "cdylib",
        "--allow",
        "non_snake_case",
    ]);
    compile.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in/cupti.rs"));
    assert!(compile.arg("-o").arg(dir.join("libcupti.so")).status().unwrap().success());
}

fn reading<'a>(ours: &'a Value, case: &str) -> &'a Value {
    let readings = ours["readings"].as_array().unwrap();
    readings.iter().find(|reading| reading["case"] == case).unwrap()
}

#[test]
fn cases_are_timed_as_annotated() {
    let ours = ours(&["ours", "3"]);
    for reading in ours["readings"].as_array().unwrap() {
        let case = reading["case"].as_str().unwrap();
        let calls = if case.contains("queued") { 15 } else { 3 };
        assert_eq!(reading["timed"], calls, "{case}");
        assert_eq!(
            reading["cache"],
            if case.contains("cold") { "cold" } else { "as-found" },
            "{case}"
        );
    }
    let spin = reading(&ours, "spin_10us");
    assert!(spin["fed"].as_u64() >= Some(2), "a site's first call is not held");
    let exact = formula::fed_pair_ns(&[formula::spin_ns(10_000)]);
    // Event times are 32-bit floating-point milliseconds.
    assert_eq!(spin["raw"]["median"].as_f64().map(f64::round), Some(exact as f64));
    // Events recorded without gpu-time read the same.
    assert_eq!(ours["bare"]["median"].as_f64().map(f64::round), Some(exact as f64));
    assert!(ours["host_cost"]["median"].is_f64() && ours["device"]["flush_bytes"].is_u64());
}

/// Every replay except the first is read.
#[test]
fn nodes_are_read_after_each_replay() {
    let ours = ours(&["ours", "3"]);
    let nodes = ours["nodes"].as_array().unwrap();
    let node = |name: &str| nodes.iter().find(|node| node["case"] == name).unwrap();
    for name in ["node_spin_10us", "node_copy_15mib"] {
        assert_eq!((&node(name)["timed"], &node(name)["fed"]), (&3.into(), &3.into()), "{name}");
    }
    // In a graph, the gap before a kernel is 805 ns shorter.
    let raw = node("node_spin_10us")["raw"]["median"].as_f64().unwrap();
    let [inside, outside] =
        [120, 925].map(|gap| (formula::spin_ns(10_000) + gap).div_ceil(32) * 32);
    let exact = formula::fed_pair_ns(&[formula::spin_ns(10_000)]) - outside + inside;
    assert!((raw - exact as f64).abs() < 1.0, "{raw}, not {exact}");
}

#[test]
fn tracked_samples_are_counted() {
    for (arguments, tracked) in [(&["ours", "3", "tracked"][..], 3), (&["ours", "3"], 0)] {
        assert_eq!(reading(&ours(arguments), "copy_15mib")["tracked"], tracked);
    }
}

#[test]
fn truth_matches_simulated_device() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    const FLUSH_BYTES: u64 = 62_914_560;
    let truth = |method| role(&["truth", "5", method, &FLUSH_BYTES.to_string()], dir.path());
    let read = truth("read");
    assert_eq!(read["flush"]["median"].as_f64(), Some((FLUSH_BYTES / 4_000) as f64));
    let truth = truth("write-discard");
    let median = |case: &str| reading(&truth, case)["span"]["median"].as_f64();
    assert_eq!(median("empty"), Some(formula::EMPTY_NS as f64));
    for (case, us) in [("spin_1us", 1), ("spin_10us", 10), ("queued_spin_200us", 200)] {
        assert_eq!(median(case), Some(formula::spin_ns(us * 1_000) as f64), "{case}");
    }
    const N16: u64 = (15 << 20) / 16;
    assert_eq!(median("copy_15mib"), Some(formula::hot_copy_ns(N16) as f64));
    assert_eq!(median("cold_copy_15mib"), Some(formula::cold_copy_ns(N16) as f64));
    assert!(median("memset_64mib").is_some() && median("device_copy_64mib").is_some());
    // A memset, a gap, and the discarding kernel.
    let write_ns = 800 + FLUSH_BYTES / 4_494;
    let discard_ns = 545 + FLUSH_BYTES / 14_000;
    let span = (write_ns + 925).next_multiple_of(32) + discard_ns;
    assert_eq!(truth["flush"]["median"].as_f64(), Some(span as f64));
    // The simulated driver cannot run cuBLAS.
    for case in truth["left_out"].as_array().unwrap() {
        assert!(case["case"].as_str().unwrap().starts_with("product_"), "{case}");
    }
}

#[test]
fn kernel_base_prints_held_and_idle() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    let output = run(&["kernel-base"], dir.path(), true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().nth(2).unwrap();
    assert!(row.starts_with("| Simulated H200 | sm_90 | "), "{row}");
    assert!(row.ends_with(" | 545 (545–545) | 545 (545–545) |"), "{row}");
    assert!(text.ends_with("\nGPU_TIME_BIAS=cupti:545ns\n"), "{text}");
}

#[test]
fn flush_methods_prints_remaining_lines() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    let output = run(&["flush-methods"], dir.path(), true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<_> = text.lines().skip(2).map(cells).collect();
    assert_eq!(rows.len(), 8, "{text}");
    for row in rows {
        let left = match &*row[1] {
            "write-discard" => ["0.0"; 3],
            // Only the flush's own lines remain.
            _ => ["0.0", "0.0", "100.0"],
        };
        assert_eq!(row[4..7], left, "{text}");
        assert_eq!(row[8], "ncu: not installed");
    }
}

/// The stand-in has no locks, so each arrangement ends. The one with libraries calls the most functions.
#[test]
fn arrangement_of_threads_prints_its_counts() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    for name in [
        "loads, switches, flushes",
        "all three apart, lazy libraries",
        "detached over and over, launches of a graph",
    ] {
        let outcome = role(&["hazards", name], dir.path());
        assert_eq!(outcome["hung"], false);
        for count in ["loads", "switches", "flushes"] {
            assert!(outcome[count].as_u64() > Some(0), "{outcome}");
        }
    }
    let output = run(&["hazards", "none"], dir.path(), true);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.starts_with("hazards none: "), "{why}");
}

#[test]
fn leftover_has_every_state() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    let times = role(&["leftover", "once"], dir.path());
    assert_eq!(times.as_array().unwrap().len(), 6, "{times}");
    assert!(times.as_array().unwrap().iter().all(|ns| ns.as_f64() > Some(0.0)), "{times}");
}

#[test]
fn comparison_without_gpu_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["--bench"], dir.path(), false);
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"no GPU here"));
}

/// Bounds that were not checked do not count as met.
#[test]
fn comparison_without_cupti_fails() {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    if homes
        .chain(["/usr/local/cuda".into(), "/opt/cuda".into()])
        .any(|home| Path::new(&home).exists())
    {
        return; // the CUPTI of the toolkit would be found
    }
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["--bench"], dir.path(), true);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("no libcupti") && said.lines().count() == 1, "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn kernel_base_without_gpu_fails() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["kernel-base"], dir.path(), false);
    assert!(!output.status.success());
    assert!(output.stderr.ends_with(b": no GPU here\n"));
}

#[test]
fn invalid_count_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["ours", "many"], dir.path(), true);
    assert!(!output.status.success());
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(why.starts_with("ours many: ") && why.ends_with(" `many`\n"), "{why}");
}
