//! Tests for report targets that cannot be written: a message is printed on stderr, and the table
//! is still shown.

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
