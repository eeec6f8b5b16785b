//! Tests that the imports in every crate point in one direction.
//!
//! No file may import, directly or indirectly, a file that imports it. In the runtime, a folder may
//! import only from folders that precede it in [`LAYERS`], which is the only definition of that
//! order.

#[path = "layers/imports.rs"]
mod imports;
#[path = "layers/modules.rs"]
mod modules;
#[path = "layers/names.rs"]
mod names;
mod support;
#[path = "layers/targets.rs"]
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::{Imports, imports};
use modules::{Twin, modules};

const RUNTIME: &str = "gpu-time-runtime/src";

/// Folders of the runtime, lowest first. Folders in the same row do not import each other.
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
    &["settle", "tools"],
];

/// Files at the runtime's root, above every folder.
const ROOT_FILES: &[&str] = &["lib.rs", "private.rs"];

#[test]
fn no_crate_has_an_import_cycle() {
    let targets = targets::targets();
    assert!(targets.len() > 80, "only {} targets", targets.len());
    let imports = targets.iter().flat_map(|root| imports_from(root));
    let cycles: BTreeSet<_> = imports.flat_map(|imports| cycles(&imports)).collect();
    assert!(cycles.is_empty(), "import cycles: {cycles:#?}");
}

#[test]
fn runtime_imports_point_down() {
    let imports = imports_from(&Path::new(RUNTIME).join("lib.rs"));
    let upward: BTreeSet<_> = imports.iter().flat_map(|imports| upward(RUNTIME, imports)).collect();
    assert!(upward.is_empty(), "upward imports in the runtime: {upward:#?}");
}

#[test]
fn runtime_root_holds_only_folders_and_crate_faces() {
    for entry in fs::read_dir(targets::repository().join(RUNTIME)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_known = match entry.file_type().unwrap().is_dir() {
            true => LAYERS.iter().any(|row| row.contains(&name.as_str())),
            false => ROOT_FILES.contains(&name.as_str()),
        };
        assert!(is_known, "`{name}` is in no layer: add its folder to `LAYERS`");
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
    let found = cycles(&planted_imports(Twin::Usual, &planted));
    assert_eq!(found, [["a.rs", "b/inner.rs", "c.rs"].map(PathBuf::from)]);
}

#[test]
fn planted_use_of_a_reexport_closes_a_cycle() {
    for face in ["fn f(_: Inner) {}", "fn f() { drop(vec![Inner]) }", "const N: usize = Inner::N;"]
    {
        let face = format!("mod inner; pub use inner::Inner; pub struct Outer; {face}");
        let planted = [
            ("lib.rs", "mod outer;"),
            ("outer.rs", face.as_str()),
            ("outer/inner.rs", "use super::Outer; pub struct Inner;"),
        ];
        let found = cycles(&planted_imports(Twin::Usual, &planted));
        assert_eq!(found, [["outer/inner.rs", "outer.rs"].map(PathBuf::from)], "{face}");
    }
}

#[test]
fn planted_upward_import_is_found() {
    for import in [
        "use crate::record::{threads as t};",
        "use crate::{record::threads};",
        "use super::super::record::threads;",
        "fn f() { let _ = crate::record::threads::current(); }",
        "fn f() { println!(\"{}\", crate::record::threads::current()); }",
        "fn f() { println!(\"{}\", super::super::record::threads::current()); }",
        "fn f() { println!(\"{}\", crate::record::threads::current::<u8>()); }",
        "pub(crate) use crate::record::threads;",
        "pub(crate) use crate::record::threads::current; fn f() { current() }",
        "pub(crate) use crate::record::*; fn f() { threads::current() }",
        "mod inner { pub(crate) use crate::record::threads::current; }",
        "mod inner { use super::super::super::record::threads; }",
        "mod inner { pub(crate) use super::super::super::record; } fn f() { inner::record::threads::current() }",
        "macro_rules! current { () => { $crate::record::threads::current() } }",
    ] {
        let planted = [
            ("lib.rs", "mod base; mod record;"),
            ("base/mod.rs", "pub mod lock;"),
            ("base/lock.rs", import),
            ("record/mod.rs", "pub mod threads;"),
            ("record/threads.rs", "pub fn current() {}"),
        ];
        let found = upward("", &planted_imports(Twin::Usual, &planted));
        assert!(found.contains(&"base/lock.rs -> record/threads.rs".to_owned()), "{import}");
    }
}

#[test]
fn planted_upward_import_of_a_twin_is_found() {
    let planted = [
        ("lib.rs", "#[cfg_attr(not(on), path = \"base/off.rs\")] mod base; mod record;"),
        ("base/mod.rs", ""),
        ("base/off.rs", "use crate::record;"),
        ("record/mod.rs", ""),
    ];
    let [usual, other] = [Twin::Usual, Twin::Other].map(|twin| planted_imports(twin, &planted));
    assert_eq!(upward("", &usual), [""; 0]);
    assert_eq!(upward("", &other), ["base/off.rs -> record/mod.rs"]);
}

#[test]
fn imports_inside_a_file_do_not_count() {
    let planted = [
        ("lib.rs", "mod a;"),
        (
            "a.rs",
            "mod inner { pub(super) use super::f; pub fn g() { super::f() } } fn f() { inner::g() }",
        ),
    ];
    assert_eq!(
        planted_imports(Twin::Usual, &planted).get(Path::new("a.rs")),
        Some(&BTreeSet::new())
    );
}

#[test]
fn imports_of_tests_do_not_count() {
    let planted = [
        ("lib.rs", "mod base; mod record;"),
        ("base/mod.rs", "#[cfg(test)] mod fake; #[cfg(test)] mod tests { use crate::record; }"),
        ("base/fake.rs", "use crate::record;"),
        ("record/mod.rs", ""),
    ];
    assert_eq!(upward("", &planted_imports(Twin::Usual, &planted)), [""; 0]);
}

fn planted_imports(twin: Twin, files: &[(&str, &str)]) -> Imports {
    let text = |file: &Path| {
        files.iter().find(|(name, _)| Path::new(name) == file).map(|(_, text)| (*text).to_owned())
    };
    imports(&modules(Path::new("lib.rs"), twin, &text))
}

/// Returns the imports in a target, with and without its optional features.
fn imports_from(root: &Path) -> [Imports; 2] {
    let repository = targets::repository();
    let read = |file: &Path| fs::read_to_string(repository.join(file)).ok();
    [Twin::Usual, Twin::Other].map(|twin| imports(&modules(root, twin, &read)))
}

/// Returns imports from a folder that is not below the importing one.
fn upward(root: &str, imports: &Imports) -> Vec<String> {
    let within = |file: &Path| file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let layer = |file: &str| {
        let folder = file.split_once('/')?.0;
        LAYERS.iter().position(|row| row.contains(&folder)).map(|layer| (layer, folder.to_owned()))
    };
    let mut found = Vec::new();
    for (file, imported) in imports {
        for other in imported {
            let (file, other) = (within(file), within(other));
            let is_upward = match (layer(&file), layer(&other)) {
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
fn cycles(imports: &Imports) -> Vec<Vec<PathBuf>> {
    let reachable: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = imports
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
    let is_mutual = |a: &PathBuf, b: &PathBuf| {
        let reaches = |from: &PathBuf, to: &PathBuf| {
            reachable.get(from).is_some_and(|seen| seen.contains(to))
        };
        reaches(a, b) && reaches(b, a)
    };
    let mut found: Vec<Vec<PathBuf>> = Vec::new();
    for file in imports.keys().filter(|file| is_mutual(file, file)) {
        match found.iter_mut().find(|group| group.first().is_some_and(|of| is_mutual(of, file))) {
            Some(group) => group.push(file.clone()),
            None => found.push(vec![file.clone()]),
        }
    }
    found
}
