//! What of the comparison runs without a GPU. CUPTI has no stand-in, so the role `truth` runs on a real
//! one only.

use std::path::Path;
use std::process::{Command, Output};

use gpu_time_sim_driver::{SimDriver, formula};
use serde_json::Value;

const ACCURACY: &str = env!("CARGO_BIN_EXE_accuracy");
const KERNEL_BASE: &str = env!("CARGO_BIN_EXE_kernel-base");

/// Runs a program with the simulated driver; without `GPU_TIME_SIM` that has no device.
fn run(program: &str, arguments: &[&str], dir: &Path, is_simulated: bool) -> Output {
    let sim = SimDriver::install(dir).unwrap();
    let mut command = Command::new(program);
    sim.apply(&mut command).args(arguments).env("GPU_TIME_REPORT", "none");
    if !is_simulated {
        command.env_remove("GPU_TIME_SIM");
    }
    command.output().unwrap()
}

fn ours(arguments: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let output = run(ACCURACY, arguments, dir.path(), true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
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
    assert!(ours["host_cost"]["median"].is_f64() && ours["device"]["flush_bytes"].is_u64());
}

#[test]
fn with_event_tracking_its_share_is_counted() {
    for (arguments, tracked) in [(&["ours", "3", "tracked"][..], 3), (&["ours", "3"], 0)] {
        assert_eq!(reading(&ours(arguments), "copy_15mib")["tracked"], tracked);
    }
}

#[test]
fn without_a_gpu_the_comparison_says_so_and_is_content() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(ACCURACY, &["--bench"], dir.path(), false);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "no GPU here: nothing was measured\n");
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
