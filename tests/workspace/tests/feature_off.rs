//! Tests that gpu-time without the `enabled` feature adds two packages, leaves the assembly
//! unchanged and makes an empty report.
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

/// Returns the package with the programs that must not compile.
fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("ui")
}

/// Compiles one of these programs and returns the errors in the same format as `trybuild`.
fn mistakes(program: &str, gpu_time: &Path) -> String {
    let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
    rustc.args([program, "--edition=2024", "--crate-type=bin", "--cap-lints=allow"]);
    rustc.args(["--emit=metadata", "-o"]).arg(target().join("mistakes"));
    rustc.arg("--extern").arg(format!("gpu_time={}", gpu_time.display()));
    let dependencies = gpu_time.parent().expect("a file in a folder");
    rustc.arg("-L").arg(format!("dependency={}", dependencies.display()));
    let output = rustc.current_dir(ui()).output().expect("rustc runs");
    assert!(!output.status.success(), "{program} compiles without the feature");
    let errors = text(&output.stderr).split("error: aborting due to").next().unwrap_or_default();
    format!("{}\n", errors.trim_end())
}

#[test]
fn off_build_reports_same_mistakes_as_enabled_build() {
    let library = library(Off);
    let folder = ui().join("tests/ui/fail");
    let mut programs =
        ["value/missing.rs", "value/flags.rs", "block/arguments.rs"].map(str::to_owned).to_vec();
    for kind in ["item", "repeated", "unknown"] {
        let files = std::fs::read_dir(folder.join(kind)).expect("a folder of programs");
        let names = files.map(|file| file.expect("a readable folder").file_name());
        let names = names.map(|name| name.into_string().expect("a name in UTF-8"));
        let names = names.filter(|name| name.ends_with(".rs"));
        programs.extend(names.map(|name| format!("{kind}/{name}")));
    }
    assert!(programs.len() > 6, "{programs:?}");
    for program in programs {
        let expected = std::fs::read_to_string(folder.join(&program).with_extension("stderr"));
        let found = mistakes(&format!("tests/ui/fail/{program}"), &library);
        assert_eq!(found, expected.expect("the enabled build's errors"), "{program}");
    }
}

/// Runs the program and returns its stdout and stderr.
fn run(feature: Feature) -> (String, String) {
    let mut command = cargo("run", feature);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPU_TIME") {
            command.env_remove(name);
        }
    }
    let output = succeed(&mut command);
    (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

#[test]
fn program_runs_in_both_builds() {
    let (out, err) = run(Off);
    assert_eq!(err, "", "without the feature nothing is reported");
    let kinds: Vec<_> = out.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(kinds, ["settled", "compared", "process", "inconsistencies", "clocks"], "{out}");
    assert!(out.contains("settled: (1, true, [], None)"), "the closure is called once\n{out}");
    assert!(out.contains("built without its feature `enabled`"), "{out}");
    assert!(out.contains("clocks: Err(\"gpu-time was built without"), "{out}");

    let compared = "compared: ([\"old\", \"new\"], 1, 1, 0, [])";
    assert!(out.contains(compared), "each closure is called once\n{out}");

    let (out, err) = run(On);
    assert!(out.contains(compared), "each closure is called once if it measures nothing\n{out}");
    let sites = out.lines().filter(|line| line.starts_with("site: ")).count();
    let series = out.lines().filter(|line| line.starts_with("series: ")).count();
    assert_eq!((sites, series), (16, 20), "{out}");
    assert!(out.contains("build gpu-time with the feature `nvml`"), "{out}");
    assert!(out.contains("settled: (6, true, [], None)"), "{out}");
    let tables = err.lines().filter(|line| line.starts_with("gpu-time ")).count();
    assert_eq!(tables, 2, "one by `report()` and one at the end\n{err}");
}

/// A new accessor must be added to the program, and thus to the off build.
#[test]
fn program_calls_every_accessor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let program = read(package().join("src/main.rs"));
    let report = [
        "snapshot",
        "process",
        "budget",
        "device",
        "flush_proof",
        "coverage",
        "site",
        "series",
        "rate",
        "tree",
    ]
    .into_iter()
    .chain(["stats/mod", "stats/histogram", "stats/timeline"])
    .map(|name| format!("gpu-time-report/src/{name}.rs"));
    let runtime = [
        "lifecycle/clocks",
        "control/configure",
        "settle/compared",
        "settle/options",
        "settle/settled",
        "settle/unmet",
    ]
    .map(|name| format!("gpu-time-runtime/src/{name}.rs"));
    let mut accessors = 0;
    for file in report.chain(runtime) {
        // Hidden functions are for the other packages, and functions without `self` are
        // constructors.
        let source = read(root.join(&file)).replace("    #[doc(hidden)]\n    pub fn ", "");
        let public = source.lines().filter_map(|line| line.strip_prefix("    pub fn "));
        let public = public.filter(|rest| rest.contains("self"));
        for name in public.filter_map(|rest| rest.split('(').next()) {
            assert!(program.contains(&format!(".{name}(")), "`{name}` of `{file}` is not called");
            accessors += 1;
        }
    }
    assert!(accessors > 60, "only {accessors} accessors were found");
}
