//! The targets of all packages in the repository, by their manifests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::succeed;

/// Returns the root file of every target, including those outside the workspace, by its path in the
/// repository.
pub fn targets() -> BTreeSet<PathBuf> {
    let repository = repository();
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::new());
    for manifest in manifests(&repository) {
        if known.contains(&manifest) {
            continue;
        }
        for package in packages(&manifest) {
            known.insert(path(&package["manifest_path"]));
            for target in package["targets"].as_array().expect("a package has targets") {
                let file = path(&target["src_path"]);
                found.insert(file.strip_prefix(&repository).expect("it is inside").to_owned());
            }
        }
    }
    found
}

/// Returns the repository's folder.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it is in `tests`").to_owned()
}

/// Returns the manifests in a folder, those of workspaces before their members'.
fn manifests(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.join("Cargo.toml")];
    found.retain(|manifest| manifest.exists());
    for entry in fs::read_dir(folder).expect("the repository is readable") {
        let entry = entry.expect("the repository is readable");
        let name = entry.file_name();
        let is_folder = entry.file_type().expect("it has a type").is_dir();
        if is_folder && name != "target" && !name.to_string_lossy().starts_with('.') {
            found.extend(manifests(&entry.path()));
        }
    }
    found
}

/// Returns the packages of a manifest's workspace.
fn packages(manifest: &Path) -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--quiet", "--format-version=1"]);
    let output = succeed(cargo.arg("--manifest-path").arg(manifest)).stdout;
    let mut metadata: Value = serde_json::from_slice(&output).expect("it is JSON");
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no packages") };
    packages
}

fn path(value: &Value) -> PathBuf {
    PathBuf::from(value.as_str().expect("it is a path"))
}
