//! Tests which of an application's other crates are rebuilt when gpu-time is turned on.
//!
//! Cargo builds a crate once for all of its dependents, with the union of the features that they
//! request. If gpu-time requests a feature that the application does not, that crate and all of its
//! dependents are rebuilt. Each such crate is named here, and `docs/production.md` explains how to avoid
//! this.
//!
//! `tests/rebuilds` is an application with its own workspace, built here by a separate cargo.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use support::{succeed, text};

/// Returns the files of each crate used in this build. Their names contain cargo's hash of the
/// crate's version, features, settings and dependencies. Comparing them, rather than cargo's
/// `fresh`, also works if an earlier run has left the files from both builds.
fn artifacts(features: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--locked", "--quiet", "--message-format=json"]);
    cargo.args(["--features", &features.join(",")]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../rebuilds"));
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("rebuilds"));
    let output = succeed(&mut cargo);
    let mut artifacts = BTreeMap::<String, BTreeSet<String>>::new();
    for line in text(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).expect("cargo's messages are JSON");
        if message["reason"] == "compiler-artifact" {
            let id = message["package_id"].as_str().expect("a package ID");
            let files = message["filenames"].as_array().expect("a list of files");
            let files = files.iter().map(|file| file.as_str().expect("a path").to_owned());
            artifacts.entry(name(id).to_owned()).or_default().extend(files);
        }
    }
    assert!(artifacts.len() > 20, "{artifacts:?}");
    artifacts
}

/// Returns the name in `registry+https://…#name@version` or `path+file:///…/name#version`.
fn name(package_id: &str) -> &str {
    let (source, fragment) = package_id.split_once('#').expect("a package ID has a fragment");
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => source.rsplit('/').next().expect("a path has a last part"),
    }
}

/// Returns the crates that are rebuilt when `on` is added to the features `always`, excluding those
/// that depend on gpu-time.
fn rebuilt(on: &str, always: &[&str]) -> BTreeSet<String> {
    let off = artifacts(always);
    let on = artifacts(&[always, &[on]].concat());
    assert!(!off.contains_key("gpu-time-runtime") && on.contains_key("gpu-time-runtime"));
    let depends_on_gpu_time = |name: &str| name == "rebuilds" || name.starts_with("gpu-time");
    let names = off.iter().filter(|(name, files)| !files.is_subset(&on[*name]));
    let names = names.map(|(name, _)| name.clone()).filter(|name| !depends_on_gpu_time(name));
    let names: BTreeSet<String> = names.collect();
    println!("rebuilt with {always:?}: {names:?}");
    names
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// To read a function's body, the attribute needs syn's features `full`, `visit` and `visit-mut`.
/// Derive macros use the same syn without these features. `kernels` belongs to the application, and its
/// build script uses serde.
#[test]
fn enabled_rebuilds_only_dependents_of_syn() {
    assert_eq!(rebuilt("gpu-time", &[]), set(["kernels", "serde", "serde_derive", "syn"]));
}

#[test]
fn enabled_rebuilds_nothing_with_features_of_syn_always_on() {
    assert_eq!(rebuilt("gpu-time", &["syn-features"]), set([]));
}

/// gpu-time's default feature selects a CUDA version for applications that do not depend on cudarc
/// 0.19. This application does, and should turn the feature off.
#[test]
fn default_features_rebuild_cudarc() {
    let always = ["cuda-fallback", "syn-features"];
    assert_eq!(rebuilt("gpu-time", &always), set(["cudarc", "kernels"]));
}

/// The `tracing` crates request once_cell's default features, but tempfile uses once_cell without them.
#[test]
fn full_with_syn_features_rebuilds_dependents_of_once_cell() {
    let always = ["syn-features", "syn-2-features"];
    assert_eq!(rebuilt("gpu-time-full", &always), set(["once_cell", "tempfile"]));
}

#[test]
fn full_with_syn_features_and_tracing_rebuilds_nothing() {
    let always = ["syn-features", "syn-2-features", "with-tracing"];
    assert_eq!(rebuilt("gpu-time-full", &always), set([]));
}
