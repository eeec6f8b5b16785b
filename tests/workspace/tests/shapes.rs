//! Tests that annotating a function never changes its meaning.
//!
//! `tests/shapes` contains functions of all shapes. A separate cargo builds them plain and
//! annotated, in three editions. Both builds must print the same output, without a driver and on the
//! simulated driver, and cause the same compiler warnings.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_time_sim_driver::SimDriver;
use serde_json::Value;

use support::{succeed, text};

const EDITIONS: [&str; 3] = ["2018", "2021", "2024"];
/// Crate roots: one forbids unsafe code, the other contains the shapes that need it.
const ROOTS: [&str; 2] = ["safe", "ffi"];

/// Settings for runs on a simulated GPU.
const SETTINGS: [(&str, &[(&str, &str)]); 2] = [
    ("as annotated", &[]),
    ("each call cold and held", &[("GPU_TIME_COLD", "clean"), ("GPU_TIME_SLEEP", "on")]),
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shapes")
}

/// Returns a folder for this test inside the workspace's target folder.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes").join(name)
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Plain,
    Annotated,
}
use Variant::{Annotated, Plain};

impl Variant {
    fn target(self) -> PathBuf {
        match self {
            Plain => scratch("plain"),
            // The recipe for a C library has the same dependencies and is built there as well.
            Annotated => Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs"),
        }
    }

    fn cargo(self, subcommand: &str) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([subcommand, "--quiet", "--locked", "--workspace"]);
        cargo.args(["--manifest-path".into(), corpus().join("Cargo.toml")]);
        cargo.args(["--target-dir".into(), self.target()]);
        if self == Annotated {
            cargo.args(["--features", "timed"]);
        }
        // `-D warnings` is meant for our own code. Some shapes exist to cause warnings.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        cargo
    }

    fn run(self, program: &str) -> Command {
        let mut command = Command::new(self.target().join("debug").join(program));
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("GPU_TIME")) {
            command.env_remove(name);
        }
        // Print only the shapes' log, and never touch a real device.
        command.env("GPU_TIME_REPORT", "none").env("CUDA_VISIBLE_DEVICES", "");
        command.env_remove("SHAPES_DRIVER");
        command
    }
}

/// The lines logged by each shape, in the order in which the shapes ran.
struct Log(Vec<Shape>);

/// A shape's name and its lines.
type Shape = (String, Vec<String>);

impl Log {
    fn of(command: &mut Command) -> Self {
        let output = succeed(command);
        let mut shapes: Vec<Shape> = Vec::new();
        for line in text(&output.stdout).lines() {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(shape) => shapes.push((shape.to_owned(), Vec::new())),
                None => shapes.last_mut().expect("a shape's name first").1.push(line.to_owned()),
            }
        }
        assert_eq!(text(&output.stderr), "", "{command:?}");
        Log(shapes)
    }

    fn names(&self) -> BTreeSet<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[track_caller]
    fn assert_same(&self, other: &Log, how: &str) {
        for ((name, lines), (other_name, other_lines)) in self.0.iter().zip(&other.0) {
            assert_eq!(name, other_name, "{how}");
            let (plain, annotated) = (lines.join("\n"), other_lines.join("\n"));
            assert!(plain == annotated, "{how}, {name}:\n{plain}\n-- annotated --\n{annotated}");
        }
        assert_eq!(self.0.len(), other.0.len(), "{how}: not all shapes ran");
    }
}

/// Returns the shapes in which at least one annotated function was called, according to the report.
///
/// A shape is a top-level module. A function's file and line determine its shape.
fn timed_shapes(report: &Value) -> BTreeSet<String> {
    let sites = report["sites"].as_array().expect("`sites` is a list");
    let called = sites.iter().filter(|site| site["calls"].as_u64() > Some(0));
    called
        .map(|site| {
            let file = Path::new(site["file"].as_str().expect("`file` is a string"));
            let line = site["line"].as_u64().expect("`line` is a number") as usize;
            let group = file.file_stem().and_then(|stem| stem.to_str()).expect("a source file");
            let source = corpus().join("src").join(group).with_extension("rs");
            let source = std::fs::read_to_string(source).expect("the corpus is readable");
            let modules =
                source.lines().take(line).filter_map(|line| line.strip_prefix("pub mod "));
            let shape = modules.last().expect("a shape above the function").trim_end_matches(" {");
            format!("{group}::{shape}")
        })
        .collect()
}

#[test]
fn annotated_shapes_print_the_same() {
    let bins = EDITIONS.iter().flat_map(|edition| ROOTS.map(|root| format!("{root}-{edition}")));
    let bins: Vec<String> = bins.flat_map(|bin| ["--bin".into(), bin]).collect();
    for variant in [Plain, Annotated] {
        let built = succeed(variant.cargo("build").args(&bins));
        assert_eq!(text(&built.stderr), "");
    }
    let sim = SimDriver::install(scratch("driver")).expect("the simulated driver is installed");

    let mut drops_by_edition: Vec<Vec<Shape>> = Vec::new();
    for edition in EDITIONS {
        let mut all = Log(Vec::new());
        for root in ROOTS {
            let program = format!("{root}-{edition}");
            let report = scratch(&format!("{program}.json"));
            let json = format!("json:{}", report.display());
            let read_report = || -> Value {
                let report = std::fs::read(&report).expect("a report was written");
                serde_json::from_slice(&report).expect("the report is JSON")
            };

            let plain = Log::of(&mut Plain.run(&program));
            let annotated = Log::of(Annotated.run(&program).env("GPU_TIME_REPORT", &json));
            plain.assert_same(&annotated, &format!("{program} without a driver"));
            let timed = timed_shapes(&read_report());
            let untimed: Vec<_> =
                plain.names().into_iter().filter(|name| !timed.contains(*name)).collect();
            assert!(untimed.is_empty(), "{program}: no annotated call in {untimed:?}");

            for (how, settings) in SETTINGS {
                let mut run = Annotated.run(&program);
                run.env("SHAPES_DRIVER", "1")
                    .env("GPU_TIME_REPORT", &json)
                    .envs(settings.iter().copied());
                let simulated = Log::of(sim.apply(&mut run));
                plain.assert_same(&simulated, &format!("{program} on a simulated GPU, {how}"));
                let brackets = brackets_on_the_gpu(&read_report());
                assert!(brackets >= 20, "{program}: {brackets} brackets on a simulated GPU, {how}");
            }

            all.0.extend(plain.0);
        }
        let names = all.names();
        println!("edition {edition}: {} shapes: {names:?}", names.len());
        assert_eq!(names.len(), all.0.len(), "two shapes of one name");
        assert!(names.len() >= 100, "edition {edition}: only {} shapes", names.len());
        drops_by_edition
            .push(all.0.into_iter().filter(|(name, _)| name.starts_with("drops::")).collect());
    }
    // Drop order differs between editions. If the logs did not show this, equal logs would prove
    // nothing.
    assert_ne!(drops_by_edition[0], drops_by_edition[1]);
    assert_ne!(drops_by_edition[1], drops_by_edition[2]);
}

fn brackets_on_the_gpu(report: &Value) -> u64 {
    let sites = report["sites"].as_array().expect("`sites` is a list");
    let series = sites.iter().flat_map(|site| site["series"].as_array().expect("a list"));
    let on_gpu = series.filter(|series| series["device"] != "host");
    on_gpu.map(|series| series["measured"].as_u64().expect("`measured` is a number")).sum()
}

/// Prints one line per diagnostic.
const SHORT: &str = "--message-format=short";

/// A diagnostic in [`SHORT`] form, without its suggested fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Diagnostic {
    file: String,
    line: usize,
    column: usize,
    message: String,
}

impl Diagnostic {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(4, ':');
        let file = Path::new(fields.next()?).file_name()?.to_str()?.to_owned();
        let (line, column) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let message = fields.next()?.split(": help: ").next()?.trim().to_owned();
        Some(Self { file, line, column, message })
    }

    /// Runs `cargo`, which must succeed, and returns all diagnostics.
    fn all(cargo: &mut Command) -> BTreeSet<Self> {
        let output = succeed(cargo);
        text(&output.stderr).lines().filter_map(Self::parse).collect()
    }
}

#[test]
fn annotated_shapes_get_the_same_warnings() {
    let source = std::fs::read_to_string(corpus().join("src/lints.rs")).expect("it is readable");
    let lines = source.lines().zip(1..).filter(|(text, _)| text.ends_with("//~"));
    let expected: BTreeSet<usize> = lines.map(|(_, line)| line).collect();
    assert!(expected.len() >= 50);

    for edition in EDITIONS {
        let bin = format!("lints-{edition}");
        let [plain, annotated] = [Plain, Annotated]
            .map(|variant| Diagnostic::all(variant.cargo("build").args(["--bin", &bin, SHORT])));
        let warned: BTreeSet<usize> = plain.iter().map(|diagnostic| diagnostic.line).collect();
        assert_eq!(warned, expected, "{bin}: warnings must be on the marked lines only");
        let (lost, gained) = (&plain - &annotated, &annotated - &plain);
        assert!(lost.is_empty() && gained.is_empty(), "{bin}: lost {lost:#?}, gained {gained:#?}");
    }
}

/// Clippy may find less in a body that the attribute has rewritten, but not more.
#[test]
fn clippy_finds_nothing_new_in_annotated_shapes() {
    let [plain, annotated] = [Plain, Annotated].map(|variant| {
        let bins = ["safe-2024", "ffi-2024", "lints-2024"];
        let groups = ["clippy::all", "clippy::pedantic", "clippy::nursery"];
        let mut cargo = variant.cargo("clippy");
        cargo.args(bins.iter().flat_map(|bin| ["--bin", bin])).arg(SHORT);
        cargo
            .args(["--", "--cap-lints", "warn"])
            .args(groups.iter().flat_map(|group| ["-W", group]));
        Diagnostic::all(&mut cargo)
    });
    assert!(plain.len() > 100, "clippy found only {} things", plain.len());
    let gained = &annotated - &plain;
    assert!(gained.is_empty(), "{gained:#?}");
}
