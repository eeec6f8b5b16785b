//! What a test binary writes. The tests run their own binary once more.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
fn work() {}

/// The program that the tests run.
#[test]
#[ignore = "changes the current directory"]
fn elsewhere() {
    env::set_current_dir("/").unwrap();
    work();
}

/// Runs it with these variables, and returns stderr.
fn run(folder: &Path, variables: &[(&str, &str)]) -> String {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "harness::elsewhere"]).current_dir(folder);
    let output = program.env_remove("GPU_TIME_REPORT").envs(variables.iter().copied()).output();
    String::from_utf8(output.unwrap().stderr).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn test_binary_is_quiet_unless_a_report_is_asked_for() {
    let folder = folder("quiet");
    assert_eq!(run(&folder, &[]), "");
    let table = run(&folder, &[("GPU_TIME_REPORT", "table")]);
    assert!(table.contains("harness::work"), "{table}");
}

#[test]
fn relative_path_is_that_of_the_start() {
    let folder = folder("relative");
    assert_eq!(run(&folder, &[("GPU_TIME_REPORT", "json:r.json")]), "");
    let report = fs::read_to_string(folder.join("r.json")).unwrap();
    assert!(report.contains("harness::work"), "{report}");
}

#[test]
fn invalid_value_is_on_stderr_once_and_in_reports_elsewhere() {
    let folder = folder("invalid");
    let variables = [("GPU_TIME_REPORT", "table,json:r.json"), ("GPU_TIME_COLD", "icy")];
    let stderr = run(&folder, &variables);
    assert_eq!(stderr.matches("invalid value `icy`").count(), 1, "{stderr}");
    let report = fs::read_to_string(folder.join("r.json")).unwrap();
    assert_eq!(report.matches("invalid value `icy`").count(), 1, "{report}");
}
