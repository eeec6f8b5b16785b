//! The same annotations compile with every cudarc that is served, side by side in one binary.
//!
//! `tests/cudarc-versions` is a package outside the workspace, whose lock has all of them. On a GPU
//! machine it also runs, from the GPU bundle.

use std::path::Path;
use std::process::Command;

#[test]
fn every_cudarc_since_0_15() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--locked", "--quiet"]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cudarc-versions"));
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudarc-versions"));
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
