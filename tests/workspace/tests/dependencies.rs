//! Tests for dependencies: their sources, licences and compiler versions.

use std::process::Command;

use serde_json::Value;

/// The accepted licences, as stated by the packages. Read a new one before adding it.
const LICENCES: [&str; 18] = [
    "(MIT OR Apache-2.0) AND Unicode-3.0",
    "Apache-2.0",
    "Apache-2.0 / MIT",
    "Apache-2.0 OR BSL-1.0",
    "Apache-2.0 OR MIT",
    "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    "Apache-2.0/MIT",
    "BSD-2-Clause OR Apache-2.0 OR MIT",
    "ISC",
    "MIT",
    "MIT AND Apache-2.0",
    "MIT OR Apache-2.0",
    "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
    "MIT-0",
    "MIT/Apache-2.0",
    "Unlicense OR MIT",
    "Unlicense/MIT",
    "Zlib",
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Returns all packages in the lock file, including ours and those used only by tests.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--all-features", "--quiet", "--format-version=1"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no packages") };
    assert!(packages.len() > 20, "only {} packages", packages.len());
    packages
}

#[test]
fn licences_are_accepted_and_sources_are_the_registry() {
    for package in packages() {
        let (name, licence) = (&package["name"], &package["license"]);
        assert!(LICENCES.iter().any(|known| licence == known), "{name}: licence {licence}");
        let source = &package["source"];
        assert!(source.is_null() || source == REGISTRY, "{name}: from {source}");
    }
}

#[test]
fn no_dependency_needs_a_newer_compiler() {
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    for package in packages() {
        let needs = package["rust_version"].as_str().unwrap_or("1.0");
        assert!(version(needs) <= ours, "{}: needs Rust {needs}", package["name"]);
    }
}

/// The first command in the README would build these in addition to what users get. Test
/// dependencies belong in other packages.
#[test]
fn first_example_builds_no_dependencies_of_tests() {
    let packages = packages();
    let ours = packages.iter().find(|package| package["name"] == "gpu-time").expect("it is there");
    let dependencies = ours["dependencies"].as_array().expect("they are listed");
    let dev = dependencies.iter().filter(|dependency| dependency["kind"] == "dev");
    let names: Vec<&str> = dev.filter_map(|dependency| dependency["name"].as_str()).collect();
    assert_eq!(names, ["cudarc", "gpu-time", "gpu-time-kernels", "libc"]);
}

/// Parses the major and minor version.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|number| number.parse().expect("a number"));
    (numbers.next().expect("a major version"), numbers.next().unwrap_or(0))
}
