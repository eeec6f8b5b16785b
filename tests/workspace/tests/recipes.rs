//! Tests for `examples/recipes`: annotations change few lines, and programs run as before.
//!
//! Each recipe is a separate package outside the workspace, whose lock file has the libraries that it
//! shows. `src/plain.rs` is the program before it was annotated, `src/main.rs` after. Recipes that
//! build quickly and need only a driver run here, on the simulated driver. `gpu/recipes.sh` builds
//! all recipes, to run on a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_time_sim_driver::SimDriver;
use serde_json::Value;

mod support;

use support::succeed;

const RECIPES: [&str; 8] =
    ["c-library", "candle", "cubecl", "cuda-core", "cudarc", "cust", "era-cudart", "tokio"];
const MOST_CHANGED: usize = 5;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recipes")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_recipe_is_listed_and_documented() {
    let entries = fs::read_dir(folder()).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it is readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, RECIPES);
    for name in RECIPES {
        section(name);
    }
}

/// Returns a recipe's section in `docs/recipes.md`.
fn section(name: &str) -> String {
    let page = read(folder().join("../../docs/recipes.md"));
    let (_, after) = page
        .split_once(&format!("\n### {name}\n"))
        .unwrap_or_else(|| panic!("`docs/recipes.md` has no section on {name}"));
    after.split("\n## ").next().and_then(|it| it.split("\n### ").next()).unwrap_or(after).into()
}

#[test]
fn documented_changes_are_those_of_the_recipes() {
    for name in RECIPES {
        let source = folder().join(name).join("src");
        let (plain, timed) = (read(source.join("plain.rs")), read(source.join("main.rs")));
        let section = section(name);
        let (_, block) = section.split_once("```diff\n").expect("a block with the changes");
        let (block, _) = block.split_once("\n```").expect("the block ends");
        let lines = block.lines().map(|line| line.split_at_checked(2).expect("a mark and a line"));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (mark, line) in lines {
            let line = line.trim();
            match mark {
                "+ " => after.push(line),
                "- " => before.push(line),
                _ => {
                    before.push(line);
                    after.push(line);
                }
            }
        }
        let (plain, timed) = (code(&plain), code(&timed));
        assert!(is_subsequence(&before, &plain), "{name}: {before:?} is not in the plain program");
        assert!(
            is_subsequence(&after, &timed),
            "{name}: {after:?} is not in the annotated program"
        );
        assert_eq!(
            changed(&before, &after),
            changed(&plain, &timed),
            "{name}: changes are missing"
        );
    }
}

/// Returns `true` if `code` has all of `lines`, in this order.
fn is_subsequence(lines: &[&str], code: &[&str]) -> bool {
    let mut code = code.iter();
    lines.iter().all(|line| code.any(|other| line == other))
}

#[test]
fn recipes_have_lock_file_and_are_unpublished() {
    for name in RECIPES {
        let folder = folder().join(name);
        let manifest = read(folder.join("Cargo.toml"));
        assert!(manifest.contains("\npublish = false\n"), "{name}");
        assert!(manifest.contains("\n[workspace]\n"), "{name}");
        assert!(read(folder.join("Cargo.lock")).contains("name = \"gpu-time\""), "{name}");
    }
}

/// The dependency in `Cargo.toml` is not counted, as it is one line for all programs.
#[test]
fn annotating_changes_at_most_five_lines() {
    for name in RECIPES {
        let source = folder().join(name).join("src");
        let (plain, timed) = (read(source.join("plain.rs")), read(source.join("main.rs")));
        assert!(!plain.contains("gpu_time"), "{name}: the plain program is annotated");
        assert!(timed.contains("gpu_timed"), "{name}: the program is not annotated");
        let changed = changed(&code(&plain), &code(&timed));
        assert!(changed <= MOST_CHANGED, "{name}: {changed} lines changed");
    }
}

#[test]
fn a_replaced_line_counts_once() {
    let plain = code("a\nb\nc");
    assert_eq!(changed(&plain, &code("a\nb\n\n// new\nc")), 0);
    assert_eq!(changed(&plain, &code("a\nx\nc")), 1);
    assert_eq!(changed(&plain, &code("new\na\nx\nc\nnew")), 3);
    assert_eq!(changed(&plain, &code("a")), 2);
}

/// Returns the lines that are neither blank nor comments.
fn code(source: &str) -> Vec<&str> {
    let lines = source.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// Returns the number of lines added or removed, whichever is larger. The unchanged lines are the
/// longest common subsequence.
fn changed(before: &[&str], after: &[&str]) -> usize {
    let mut common = vec![0; after.len() + 1];
    for old in before {
        let mut diagonal = 0;
        for (i, new) in after.iter().enumerate() {
            let above = common[i + 1];
            common[i + 1] = if old == new { diagonal + 1 } else { above.max(common[i]) };
            diagonal = above;
        }
    }
    before.len().max(after.len()) - common[after.len()]
}

#[test]
fn quick_recipes_run_as_without_timing() {
    let target = target();
    let sim = SimDriver::install(target.join("driver")).expect("the simulated driver is installed");
    for name in ["cudarc", "tokio"] {
        build(name, &target);
        let program = |suffix| Command::new(target.join(format!("debug/recipe-{name}{suffix}")));
        let plain = succeed(sim.apply(&mut program("-plain")));
        let report = target.join(format!("{name}.json"));
        let mut timed = program("");
        timed.env("GPU_TIME_REPORT", format!("json:{}", report.display()));
        let timed = succeed(sim.apply(&mut timed));
        assert!(!plain.stdout.is_empty(), "{name} prints nothing");
        assert_eq!(timed.stdout, plain.stdout, "{name}");
        let report: Value = serde_json::from_str(&read(report)).expect("the report is JSON");
        let sites = report["sites"].as_array().expect("a list of functions");
        assert!(!sites.is_empty(), "{name}: no function");
        for site in sites {
            assert!(samples(site) > 0, "{name}: no sample of {}", site["name"]);
        }
    }
}

/// Returns the number of a function's calls that events measured.
fn samples(site: &Value) -> u64 {
    let series = site["series"].as_array().expect("a list of series").iter();
    let of_calls =
        series.filter(|series| series["launch"].is_null() && series["clock"] == "events");
    of_calls.map(|series| series["measured"].as_u64().expect("a number")).sum()
}

/// The recipe needs `libcudart` and cuBLAS to run, but no toolkit to build.
#[test]
fn c_library_builds_without_cuda() {
    build("c-library", &target());
}

/// Returns the target folder, which the test of shapes uses as well.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs")
}

fn build(name: &str, target: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet"]).current_dir(folder().join(name));
    cargo.env("CARGO_TARGET_DIR", target);
    succeed(&mut cargo);
}
