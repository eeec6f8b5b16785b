//! Tests for report targets that cannot be written: a message is printed on stderr, and the table
//! is still shown.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::harness::{Scenario, scenario};

const FORMATS: [&str; 4] = ["table", "json", "csv", "trace"];

fn report_to(target: &str) -> Scenario {
    scenario("absent/fallback", &[]).env("CUDA_VISIBLE_DEVICES", "").target(target)
}

#[test]
fn missing_folder() {
    for format in FORMATS {
        let target = format!("{format}:/no/such/folder/report");
        let run = report_to(&target)
            // The message comes at the start, and again at the end.
            .complains("gpu-time: cannot write the report to `/no/such/folder/report` yet: ")
            .complains("gpu-time: cannot write the report to `/no/such/folder/report`: ")
            .run();
        assert!(run.stderr.contains("absent::on_gpu_or_cpu"), "{format}: {}", run.stderr);
    }
}

#[test]
fn path_is_a_folder() {
    for format in FORMATS {
        // Said at the start, and at the end.
        report_to(&format!("{format}:/"))
            .complains("gpu-time: cannot write the report to `/`: it is a directory")
            .complains("gpu-time: cannot write the report to `/`: Is a directory")
            .run();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk() {
    for format in FORMATS {
        report_to(&format!("{format}:/dev/full"))
            .complains("gpu-time: cannot write the report to `/dev/full`: No space left on device")
            .run();
    }
}

#[test]
fn duplicate_target() {
    report_to("csv:/dev/null,trace:/dev/null")
        .complains(
            "gpu-time: invalid value `trace:/dev/null` for `GPU_TIME_REPORT`: an earlier entry goes ",
        )
        .warns("invalid value `trace:/dev/null` for `GPU_TIME_REPORT`: an earlier entry goes ")
        .run();
}

/// One process ends less than a tick of the clock of files before the next one begins.
#[test]
fn next_process_replaces_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    for _ in 0..5 {
        report_to(&format!("table,json:{}", path.display())).run();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// As in containers, where processes have the same id.
#[test]
fn report_of_concurrent_process_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [other, own] = ["r.json", "r.2.json"].map(|name| folder.path().join(name));
    fs::write(&other, "of another process").unwrap();
    let later = SystemTime::now() + Duration::from_secs(3_600);
    File::options().write(true).open(&other).unwrap().set_modified(later).unwrap();
    let run = report_to(&format!("table,json:{}", other.display())).complains("gpu-time: `").run();
    let expected = format!(
        "gpu-time: `{}` is another report, as of another process: this one is in `{}`\n",
        other.display(),
        own.display()
    );
    assert!(run.stderr.contains(&expected), "{}", run.stderr);
    assert_eq!(fs::read_to_string(other).unwrap(), "of another process");
    assert!(fs::read_to_string(own).unwrap().starts_with('{'));
}

#[test]
fn path_names_host_and_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    report_to(&format!("table,json:{path}/%h-%q{{RANK}}%q{{GPU_TIME_TEST_UNSET}}-%%p.json"))
        .env("RANK", "3")
        .complains("gpu-time: `%q{GPU_TIME_TEST_UNSET}` is empty in the path of the report, `")
        .run();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let report = folder.path().join(format!("{}-3-%p.json", host.trim()));
    assert!(fs::read_to_string(report).unwrap().starts_with('{'));
}

#[test]
fn unknown_placeholder_is_named() {
    report_to("table,json:r-%x.json")
        .complains("gpu-time: invalid value `json:r-%x.json` for `GPU_TIME_REPORT`: unknown `%x`: ")
        .warns("invalid value `json:r-%x.json` for `GPU_TIME_REPORT`: unknown `%x`: expected `%p` ")
        .run();
}
