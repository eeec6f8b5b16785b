//! What belongs to the whole process: its rights, descriptors and signals.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use crate::harness::program;

/// The user `nobody`.
const OTHER_USER: u32 = 65534;

/// The user who starts a set-user-ID program must not write files with its rights.
#[test]
fn secure_program_ignores_variables() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [own, report] = ["program", "report.json"].map(|name| dir.path().join(name));
    fs::copy(program(), &own).unwrap();
    if chown(&own, Some(OTHER_USER), None).is_err() {
        return eprintln!("skipped: this user cannot give files away");
    }
    fs::set_permissions(&own, Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(&own);
    command.arg("process/secure").env("GPU_TIME_REPORT", format!("json:{}", report.display()));
    command.env("GPU_TIME_NO_SUCH_VARIABLE", "1").env("GPU_TIME_WARMUP", "9");
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if !stdout.contains(r#""is_secure":true"#) {
        return eprintln!("skipped: this file system does not allow set-user-ID programs");
    }
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!report.exists(), "{stderr}");
    assert!(stderr.starts_with("gpu-time 0"), "{stderr}");
    assert!(stderr.contains("process::timed ") && !stderr.contains("warm-up"), "{stderr}");
}
