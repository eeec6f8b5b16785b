//! What of the comparison runs without a GPU: on the simulated driver, and for the role `truth` with a
//! library that stands in for CUPTI and reads the driver's trace.

use std::path::Path;
use std::process::{Command, Output};

use gpu_time_sim_driver::{SimDriver, formula};
use serde_json::Value;

const ACCURACY: &str = env!("CARGO_BIN_EXE_accuracy");
const KERNEL_BASE: &str = env!("CARGO_BIN_EXE_kernel-base");
const FLUSH_METHODS: &str = env!("CARGO_BIN_EXE_flush-methods");

/// A model that is quick to flush.
const SMALL_L2: &str = "l2_bytes=1048576,l2_usable_bytes=983040";

/// Runs a program with the simulated driver; without `GPU_TIME_TEST_SIM` that has no device.
fn run(program: &str, arguments: &[&str], dir: &Path, is_simulated: bool) -> Output {
    run_on("", program, arguments, dir, is_simulated)
}

fn run_on(
    model: &str,
    program: &str,
    arguments: &[&str],
    dir: &Path,
    is_simulated: bool,
) -> Output {
    let sim = SimDriver::install(dir).unwrap().model(model).traced().commands_only();
    let mut command = Command::new(program);
    sim.apply(&mut command).args(arguments).env("GPU_TIME_REPORT", "none");
    if !is_simulated {
        command.env_remove("GPU_TIME_TEST_SIM");
    }
    command.output().unwrap()
}

/// What a role prints.
fn role(arguments: &[&str], dir: &Path) -> Value {
    printed(run(ACCURACY, arguments, dir, true))
}

fn printed(output: Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

fn ours(arguments: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    printed(run_on(SMALL_L2, ACCURACY, arguments, dir.path(), true))
}

/// Puts the library that stands in for CUPTI beside the driver.
fn install_cupti(dir: &Path) {
    let mut compile = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    compile.args(["--edition", "2024", "--crate-type", "cdylib", "--allow", "non_snake_case"]);
    compile.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in/cupti.rs"));
    assert!(compile.arg("-o").arg(dir.join("libcupti.so")).status().unwrap().success());
}

fn reading<'a>(ours: &'a Value, case: &str) -> &'a Value {
    let readings = ours["readings"].as_array().unwrap();
    readings.iter().find(|reading| reading["case"] == case).unwrap()
}

#[test]
fn every_case_is_timed_as_its_attribute_says() {
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
    // An event time is a number of milliseconds in 32 bits.
    assert_eq!(spin["raw"]["median"].as_f64().map(f64::round), Some(exact as f64));
    // By hand it reads the same.
    assert_eq!(ours["bare"]["median"].as_f64().map(f64::round), Some(exact as f64));
    assert!(ours["host_cost"]["median"].is_f64() && ours["device"]["flush_bytes"].is_u64());
}

/// Every replay is read, but for the first.
#[test]
fn nodes_are_read_after_each_replay() {
    let ours = ours(&["ours", "3"]);
    let nodes = ours["nodes"].as_array().unwrap();
    let found = |name: &str| nodes.iter().find(|node| node["case"] == name).unwrap();
    for name in ["node_spin_10us", "node_copy_15mib"] {
        assert_eq!((&found(name)["timed"], &found(name)["fed"]), (&3.into(), &3.into()), "{name}");
    }
    // In a graph, the gap before a kernel is 805 ns shorter.
    let raw = found("node_spin_10us")["raw"]["median"].as_f64().unwrap();
    let [inside, outside] =
        [120, 925].map(|gap| (formula::spin_ns(10_000) + gap).div_ceil(32) * 32);
    let exact = formula::fed_pair_ns(&[formula::spin_ns(10_000)]) - outside + inside;
    assert!((raw - exact as f64).abs() < 1.0, "{raw}, not {exact}");
}

#[test]
fn with_event_tracking_its_share_is_counted() {
    for (arguments, tracked) in [(&["ours", "3", "tracked"][..], 3), (&["ours", "3"], 0)] {
        assert_eq!(reading(&ours(arguments), "copy_15mib")["tracked"], tracked);
    }
}

#[test]
fn the_truth_is_what_the_device_did() {
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
    // A memset, a gap, and the kernel that discards.
    let written = 800 + FLUSH_BYTES / 4_494;
    let discarded = 545 + FLUSH_BYTES / 14_000;
    let span = (written + 925).next_multiple_of(32) + discarded;
    assert_eq!(truth["flush"]["median"].as_f64(), Some(span as f64));
    // The simulated driver runs no kernels of cuBLAS.
    for case in truth["left_out"].as_array().unwrap() {
        assert!(case["case"].as_str().unwrap().starts_with("product_"), "{case}");
    }
}

#[test]
fn the_base_is_what_the_device_took_held_and_idle() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    let output = run(KERNEL_BASE, &[], dir.path(), true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().nth(2).unwrap();
    assert!(row.starts_with("| Simulated H200 | sm_90 | "), "{row}");
    assert!(row.ends_with(" | 545 (545–545) | 545 (545–545) |"), "{row}");
    assert!(text.ends_with("\nGPU_TIME_BIAS=cupti:545ns\n"), "{text}");
}

#[test]
fn each_flush_is_shown_with_what_it_leaves() {
    let dir = tempfile::tempdir().unwrap();
    install_cupti(dir.path());
    let output = run(FLUSH_METHODS, &[], dir.path(), true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows: Vec<_> = text.lines().skip(2).map(cells).collect();
    assert_eq!(rows.len(), 8, "{text}");
    for row in rows {
        let left = match &*row[1] {
            "write-discard" => ["0.0"; 3],
            // Its own lines are what it leaves.
            _ => ["0.0", "0.0", "100.0"],
        };
        assert_eq!(row[4..7], left, "{text}");
        assert_eq!(row[8], "ncu: not installed");
    }
}

#[test]
fn without_a_gpu_the_comparison_says_so_and_is_content() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(ACCURACY, &["--bench"], dir.path(), false);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no GPU here: nothing was measured\n");
}

/// What was not compared has not held.
#[test]
fn a_gpu_without_cupti_is_a_failure() {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    if homes
        .chain(["/usr/local/cuda".into(), "/opt/cuda".into()])
        .any(|home| Path::new(&home).exists())
    {
        return; // a toolkit's would be found
    }
    let dir = tempfile::tempdir().unwrap();
    let output = run(ACCURACY, &["--bench"], dir.path(), true);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "there is no libcupti on this machine, and so no truth to compare with: nothing was measured\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn without_a_gpu_there_is_no_base() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(KERNEL_BASE, &[], dir.path(), false);
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "kernel-base: no GPU here\n");
}

#[test]
fn a_count_that_is_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(ACCURACY, &["ours", "many"], dir.path(), true);
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "ours many: `many` is no number of calls\n"
    );
}
