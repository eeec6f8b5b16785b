//! The same annotations work with every cudarc that is served, side by side in one binary.
//!
//! `tests/cudarc-versions` is a package outside the workspace, whose lock has all of them. All run on a GPU,
//! from the GPU bundle. Here the newest does, on the simulated driver: those before it look up every function
//! that a driver has at once, and the simulated one has those that are called.

use std::path::Path;
use std::process::Command;

use gpu_time_sim_driver::SimDriver;

mod support;

use support::succeed;

#[test]
fn every_cudarc_since_0_15() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cudarc-versions");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet"]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../cudarc-versions"));
    cargo.env("CARGO_TARGET_DIR", &folder);
    succeed(&mut cargo);
    let sim = SimDriver::install(folder.join("driver")).expect("the simulated driver is installed");
    succeed(sim.apply(&mut Command::new(folder.join("debug/cudarc-versions"))).arg("0.19"));
}
