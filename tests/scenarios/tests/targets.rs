//! Where a report goes, and where it cannot go: one line says so, and the table is shown all the same.

use crate::harness::{Scenario, scenario};

const FORMATS: [&str; 4] = ["table", "json", "csv", "trace"];

fn sent_to(target: &str) -> Scenario {
    scenario("absent/fallback", &[]).env("CUDA_VISIBLE_DEVICES", "").target(target)
}

#[test]
fn a_folder_that_is_not_there() {
    for format in FORMATS {
        let target = format!("{format}:/no/such/folder/report");
        let run = sent_to(&target)
            .complains("gpu-time: cannot write the report to `/no/such/folder/report`: ")
            .run();
        assert!(run.stderr.contains("absent::on_gpu_or_cpu"), "{format}: {}", run.stderr);
    }
}

#[test]
fn a_path_that_is_a_folder() {
    for format in FORMATS {
        sent_to(&format!("{format}:/"))
            .complains("gpu-time: cannot write the report to `/`: is a directory")
            .run();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    for format in FORMATS {
        sent_to(&format!("{format}:/dev/full"))
            .complains("gpu-time: cannot write the report to `/dev/full`: No space left on device")
            .run();
    }
}

#[test]
fn a_target_that_comes_twice() {
    sent_to("csv:/dev/null,trace:/dev/null")
        .complains(
            "gpu-time: `GPU_TIME_REPORT`: `trace:/dev/null` goes where an earlier entry goes",
        )
        .warns("`GPU_TIME_REPORT`: `trace:/dev/null` goes where an earlier entry goes")
        .run();
}
