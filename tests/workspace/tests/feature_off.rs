//! Tests that gpu-time without the `enabled` feature adds two packages, leaves the assembly
//! unchanged and names the feature where a program reads values.
//!
//! `tests/feature-off` is a package outside the workspace, built by a separate cargo.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use support::{succeed, text};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../feature-off")
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("feature-off")
}

/// The state of gpu-time's `enabled` feature.
#[derive(Clone, Copy, PartialEq)]
enum Feature {
    Off,
    On,
}
use Feature::{Off, On};

fn cargo(subcommand: &str, feature: Feature) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    // `--locked` uses the network only for packages that have not been downloaded yet.
    cargo.args([subcommand, "--locked", "--quiet"]).current_dir(package());
    if feature == On {
        cargo.args(["--features", "gpu-time"]);
    }
    // The binaries have the same name, and a test must not run one that another test has just
    // built.
    cargo.env("CARGO_TARGET_DIR", target().join(if feature == On { "on" } else { "off" }));
    // These would affect only one of the two compared builds.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo
}

#[test]
fn off_build_has_two_packages() {
    let packages = |feature| -> Vec<String> {
        let tree = ["-e", "normal,build", "--target", "all", "--prefix", "none", "-f", "{p}"];
        let output = succeed(cargo("tree", feature).args(tree));
        let names = text(&output.stdout).lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    };
    assert_eq!(packages(Off), ["feature-off", "gpu-time", "gpu-time-macros"]);
    // The list includes further packages if there are any.
    assert!(packages(On).iter().any(|name| name == "cudarc"));
}

/// On systems other than Linux, no other crate is compiled that could add its own errors to ours.
#[test]
fn enabled_builds_no_dependency_elsewhere() {
    let packages = |system| -> Vec<String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        cargo.args(["tree", "--locked", "--quiet", "-p", "gpu-time", "--features", "full"]);
        // Procedural macros and their dependencies run on the machine that compiles.
        cargo.args(["-e", "normal,build,no-proc-macro", "--target", system]);
        let output = succeed(cargo.args(["--prefix", "none", "-f", "{p}"]));
        let names = text(&output.stdout).lines().filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect()
    };
    for system in ["wasm32-unknown-unknown", "x86_64-pc-windows-msvc", "aarch64-apple-darwin"] {
        assert_eq!(packages(system), ["gpu-time"], "{system}");
    }
    let linux = packages("x86_64-unknown-linux-gnu");
    assert!(linux.iter().any(|name| name == "cudarc"), "{linux:?}");
}

/// Compiles `assembly.rs` to assembly, with annotations if the library `gpu_time` is given.
fn assembly(name: &str, gpu_time: Option<&Path>, flags: &[&str]) -> Vec<u8> {
    let path = target().join(name).with_extension("s");
    let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    // Symbol names depend on the crate's name and metadata, so these are the same in all cases.
    rustc.args(["assembly.rs", "--edition=2024", "--crate-name=assembly", "-Cmetadata=one"]);
    rustc.args(["-Ccodegen-units=1", "--cap-lints=allow", "--emit"]);
    rustc.arg(format!("asm={}", path.display())).args(flags).current_dir(package());
    if let Some(library) = gpu_time {
        let dependencies = library.parent().expect("a file in a folder");
        rustc.arg("--cfg=annotated").arg("--extern");
        rustc.arg(format!("gpu_time={}", library.display()));
        rustc.arg("-L").arg(format!("dependency={}", dependencies.display()));
    }
    succeed(&mut rustc);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Builds gpu-time and returns the path of its library.
fn library(feature: Feature) -> PathBuf {
    let output = succeed(cargo("build", feature).arg("--message-format=json"));
    let messages = text(&output.stdout).lines().map(serde_json::from_str::<Value>);
    let mut messages = messages.map(|message| message.expect("cargo's messages are JSON"));
    let ours = messages.rfind(|message| message["target"]["name"] == "gpu_time");
    let file = ours.and_then(|message| Some(message["filenames"][0].as_str()?.to_owned()));
    let file = PathBuf::from(file.expect("gpu-time was built"));
    // Its dependencies are in the same folder, with hashes in their names.
    assert_eq!(file.extension().and_then(|extension| extension.to_str()), Some("rlib"));
    file
}

#[test]
fn off_build_has_plain_assembly() {
    let (off, on) = (library(Off), library(On));
    // Debug information is compared too, because line numbers must stay the same. Without
    // optimisation, the compiler would reuse generic functions from any library that contains them.
    let release = ["-Copt-level=3", "-Cdebuginfo=2"];
    let plain = assembly("plain", None, &release);
    let annotated = assembly("annotated", Some(&off), &release);
    let same = plain == annotated;
    assert!(same, "compare `plain.s` and `annotated.s` in {}", target().display());

    // The comparison detects a changed function, and the attributes have an effect when enabled.
    let changed = [&release[..], &["--cfg=changed"]].concat();
    assert!(plain != assembly("changed", None, &changed));
    assert!(plain != assembly("enabled", Some(&on), &release));
}

/// Compiles a program that must not compile, and returns the errors in the same format as `trybuild`.
fn mistakes(package: &Path, program: &str) -> String {
    let gpu_time = library(Off);
    let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    rustc.args([program, "--edition=2024", "--crate-type=bin", "--cap-lints=allow"]);
    rustc.args(["--emit=metadata", "-o"]).arg(target().join("mistakes"));
    rustc.arg("--extern").arg(format!("gpu_time={}", gpu_time.display()));
    let dependencies = gpu_time.parent().expect("a file in a folder");
    rustc.arg("-L").arg(format!("dependency={}", dependencies.display()));
    let output = rustc.current_dir(package).output().expect("rustc runs");
    assert!(!output.status.success(), "{program} compiles without the feature");
    let errors = text(&output.stderr).split("error: aborting due to").next().unwrap_or_default();
    format!("{}\n", errors.trim_end())
}

#[test]
fn off_build_reports_same_mistakes_as_enabled_build() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("ui");
    for name in ["item/others", "item/closures", "repeated/keys", "unknown/keys"] {
        let program = format!("tests/ui/fail/{name}.rs");
        let expected = std::fs::read_to_string(package.join(&program).with_extension("stderr"));
        let found = mistakes(&package, &program);
        assert_eq!(found, expected.expect("the enabled build's errors"), "{program}");
    }
}

#[test]
fn off_build_names_feature_where_values_are_read() {
    let found = mistakes(&package(), "values.rs");
    for item in ["Settle", "until_stable", "snapshot", "Series", "compare", "lock_clocks"] {
        let error = found.split("\n\n").find(|error| error.contains(&format!("`{item}` ")));
        let error = error.unwrap_or_else(|| panic!("no error names `{item}`:\n{found}"));
        assert!(error.contains("the `enabled` feature"), "{error}");
    }
}

#[test]
fn program_runs_in_both_builds() {
    let run = |feature| {
        let mut command = cargo("run", feature);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GPU_TIME") {
                command.env_remove(name);
            }
        }
        let output = succeed(command.env("GPU_TIME_REPORT", "table,json:-"));
        (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    assert_eq!(run(Off), Default::default(), "without the feature nothing is reported");

    let (out, err) = run(On);
    let tables = err.lines().filter(|line| line.starts_with("gpu-time ")).count();
    assert_eq!(tables, 2, "one by `report()` and one at the end\n{err}");
    let reports = serde_json::Deserializer::from_str(&out).into_iter::<Value>();
    let last = reports.last().expect("a report").expect("a report in JSON");
    let sites = last["sites"].as_array().expect("a list of functions");
    let series = sites.iter().filter_map(|site| site["series"].as_array()).flatten();
    assert_eq!((sites.len(), series.count()), (16, 20), "{out}");
}
