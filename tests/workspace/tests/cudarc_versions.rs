//! Tests that the same annotations work with all supported versions of cudarc, side by side in one
//! binary.
//!
//! The package `tests/cudarc-versions` is outside the workspace, and its lock file contains all
//! versions. The GPU bundle runs all of them on a GPU. Here only the newest version runs, on the
//! simulated driver: older versions look up every driver function at once, but the simulated driver
//! has only the functions that are called.

use std::path::Path;
use std::process::Command;

use gpu_time_sim_driver::SimDriver;

mod support;

use support::succeed;

#[test]
fn cudarc_since_0_15_builds_and_newest_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudarc-versions");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet"]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cudarc-versions"));
    cargo.env("CARGO_TARGET_DIR", &folder);
    succeed(&mut cargo);
    let sim = SimDriver::install(folder.join("driver")).expect("the simulated driver is installed");
    succeed(sim.apply(&mut Command::new(folder.join("debug/cudarc-versions"))).arg("0.19"));
}
