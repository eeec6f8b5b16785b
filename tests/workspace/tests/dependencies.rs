//! Tests for dependencies: the compiler versions that they need, and the dependencies of the first
//! example. The rules for licences, sources and advisories are in `deny.toml`.

use std::process::Command;

use serde_json::Value;

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
fn no_dependency_needs_a_newer_compiler() {
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    for package in packages() {
        let needs = package["rust_version"].as_str().unwrap_or("1.0");
        assert!(version(needs) <= ours, "{}: needs Rust {needs}", package["name"]);
    }
}

/// The first command in the README builds an example of this package, and with it all of the
/// package's test dependencies. These belong in other packages.
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
