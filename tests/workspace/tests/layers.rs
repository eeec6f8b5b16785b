//! Tests that the imports in every crate point in one direction.
//!
//! No file may import, directly or indirectly, a file that imports it. In the runtime, a folder may
//! import only from folders that precede it in [`LAYERS`], which is the only definition of that
//! order.

#[path = "layers/imports.rs"]
mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Sources, imports};

/// Folders in `gpu-time-runtime/src`, lowest first. Folders in the same row do not import each other.
const LAYERS: &[&[&str]] = &[
    &["base"],
    &["types"],
    &["stats"],
    &["site", "config"],
    &["gpu"],
    &["cuda"],
    &["cupti", "nvtx"],
    &["health"],
    &["record"],
    &["control"],
    &["collect"],
    &["export"],
    &["lifecycle"],
    &["call"],
    &["settle"],
];

/// Files at the runtime's root, above every folder.
const ROOT_FILES: &[&str] = &["lib.rs", "private.rs", "calibrate.rs", "doctor.rs"];

/// The crates checked for cycles.
const CRATES: &[&str] = &[
    "src",
    "gpu-time-cli/src",
    "gpu-time-macros/src",
    "gpu-time-report/src",
    "gpu-time-runtime/src",
    "kernels/src",
    "benches/accuracy/src",
    "tests/plugins/src",
    "tests/sim-cupti/src",
    "tests/sim-driver/src",
    "tests/sim-nvml/src",
    "tests/sim-nvtx/src",
];

/// The files imported by each file.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_crate_has_an_import_cycle() {
    for folder in CRATES {
        let cycles = cycles(&imports(&sources(folder)));
        assert!(cycles.is_empty(), "import cycles in {folder}: {cycles:#?}");
    }
}

#[test]
fn runtime_imports_point_down() {
    let upward = upward(&imports(&sources("gpu-time-runtime/src")));
    assert!(upward.is_empty(), "upward imports in the runtime: {upward:#?}");
}

#[test]
fn runtime_root_holds_folders_and_the_faces_of_the_crate() {
    let sources = sources("gpu-time-runtime/src");
    let known: Vec<&str> = LAYERS.iter().flat_map(|row| row.iter().copied()).collect();
    for file in sources.keys() {
        let is_known = match file.split_once('/') {
            Some((folder, _)) => known.contains(&folder),
            None => ROOT_FILES.contains(&file.as_str()),
        };
        assert!(is_known, "`{file}` is in no layer: add its folder to `LAYERS`");
    }
}

#[test]
fn planted_cycle_is_found() {
    let planted = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::{Thing as Other}, c};"),
        ("b/mod.rs", "mod inner; pub use inner::Thing;"),
        ("b/inner.rs", "pub struct Thing; fn f() { crate::c::g() }"),
        ("c.rs", "use crate::a::f as renamed; pub fn g() {}"),
    ];
    let found = cycles(&imports(&made_up(&planted)));
    assert_eq!(found, [vec!["a.rs".to_owned(), "b/inner.rs".to_owned(), "c.rs".to_owned()]]);
}

#[test]
fn planted_upward_import_is_found() {
    for import in [
        "use crate::record::{threads as t};",
        "use crate::{record::threads};",
        "use super::super::record::threads;",
        "fn f() { let _ = crate::record::threads::current(); }",
        "fn f() { println!(\"{}\", crate::record::threads::current()); }",
    ] {
        let planted = [
            ("lib.rs", "mod base; mod record;"),
            ("base/mod.rs", "pub mod lock;"),
            ("base/lock.rs", import),
            ("record/mod.rs", "pub mod threads;"),
            ("record/threads.rs", "pub fn current() {}"),
        ];
        let found = upward(&imports(&made_up(&planted)));
        assert!(found.contains(&"base/lock.rs -> record/threads.rs".to_owned()), "{import}");
    }
}

#[test]
fn imports_of_tests_do_not_count() {
    let planted = [
        ("lib.rs", "mod base; mod record;"),
        ("base/mod.rs", "#[cfg(test)] mod fake; #[cfg(test)] mod tests { use crate::record; }"),
        ("base/fake.rs", "use crate::record;"),
        ("record/mod.rs", ""),
    ];
    assert_eq!(upward(&imports(&made_up(&planted))), [""; 0]);
}

fn made_up(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

/// Returns every source file in one of the repository's folders, by its path in that folder.
fn sources(folder: &str) -> Sources {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut found = Sources::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(entry.path()).unwrap();
                found.insert(path.to_str().unwrap().to_owned(), text);
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {}", root.display());
    found
}

/// Returns imports from a folder that is not below the importing one.
fn upward(imports: &Imports) -> Vec<String> {
    let layer = |file: &str| {
        let folder = file.split_once('/')?.0;
        LAYERS.iter().position(|row| row.contains(&folder)).map(|layer| (layer, folder.to_owned()))
    };
    let mut found = Vec::new();
    for (file, imported) in imports {
        for other in imported {
            let is_upward = match (layer(file), layer(other)) {
                (Some((_, from)), Some((_, to))) if from == to => false,
                (Some((from, _)), Some((to, _))) => to >= from,
                // A folder must not import the crate's root files.
                (Some(_), None) => true,
                (None, _) => false,
            };
            if is_upward {
                found.push(format!("{file} -> {other}"));
            }
        }
    }
    found
}

/// Returns groups of files that import each other in a cycle.
fn cycles(imports: &Imports) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&String, BTreeSet<&String>> = imports
        .keys()
        .map(|file| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![file]);
            while let Some(file) = next.pop() {
                for other in imports.get(file).into_iter().flatten() {
                    if seen.insert(other) {
                        next.push(other);
                    }
                }
            }
            (file, seen)
        })
        .collect();
    let is_mutual = |a: &String, b: &String| {
        let reaches =
            |from: &String, to: &String| reachable.get(from).is_some_and(|seen| seen.contains(to));
        reaches(a, b) && reaches(b, a)
    };
    let mut found: Vec<Vec<String>> = Vec::new();
    for file in imports.keys().filter(|file| is_mutual(file, file)) {
        match found.iter_mut().find(|group| group.first().is_some_and(|of| is_mutual(of, file))) {
            Some(group) => group.push(file.clone()),
            None => found.push(vec![file.clone()]),
        }
    }
    found
}
