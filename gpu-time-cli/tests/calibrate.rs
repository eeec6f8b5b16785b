//! Tests of `calibrate` on the simulated driver and the stand-in for CUPTI.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_time_sim_cupti::{SimCupti, Version};
use gpu_time_sim_driver::SimDriver;

use crate::{Folder, Run, run};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("calibrate").join(name)
}

/// Returns the command on the simulated driver, with CUPTI if there is one.
fn command(name: &str, cupti: Option<&SimCupti>, cache: &Path) -> Command {
    let sim = SimDriver::install(folder(name)).expect("install the simulated driver").devices(2);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-time"));
    command.arg("calibrate").env_remove("CUDA_VISIBLE_DEVICES").env_remove("GPU_TIME_CUPTI");
    command.env("XDG_CACHE_HOME", cache);
    sim.apply(&mut command);
    if let Some(cupti) = cupti {
        let folder = folder(name).join("cupti");
        cupti.install(&folder).expect("install the stand-in for CUPTI");
        cupti.apply(&folder, &mut command);
    }
    command
}

fn calibrate(name: &str, cache: &Path) -> Run {
    run(&mut command(name, Some(&SimCupti::default()), cache))
}

#[test]
fn every_gpu_is_measured_and_stored() {
    let cache = Folder::new();
    let path = cache.path("gpu-time/calibration.json");
    for _ in 0..2 {
        let out = calibrate("all", &cache.path("")).success();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 3, "{out}");
        for (line, id) in lines.iter().zip(["cuda:0: ", "cuda:1: "]) {
            assert!(line.starts_with(id), "{out}");
            let version = Version::V13_0.number();
            let time = format!(": an empty kernel takes 545 ns (±0) by CUPTI {version}");
            assert!(line.ends_with(&time), "{out}");
        }
        assert_eq!(lines[2], format!("stored in {}", path.display()));
        let stored = fs::read_to_string(&path).unwrap();
        assert_eq!(stored.matches("\"empty_kernel_ns\": 545.0").count(), 2, "{stored}");
    }
}

#[test]
fn unusable_file_is_replaced() {
    let cache = Folder::new();
    let path = cache.path("gpu-time/calibration.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{").unwrap();
    calibrate("replaced", &cache.path("")).success();
    assert!(fs::read_to_string(&path).unwrap().contains("\"empty_kernel_ns\": 545.0"));
}

#[test]
fn one_line_names_what_is_missing() {
    let cache = Folder::new();
    let taken = SimCupti::default().script("other=exclusive");
    let line = run(&mut command("taken", Some(&taken), &cache.path(""))).refusal();
    assert!(line.starts_with("cannot calibrate: ") && line.contains("another tool"), "{line}");
    let mut none = command("no-gpu", None, &cache.path(""));
    SimDriver::install(folder("no-gpu")).unwrap().devices(0).apply(&mut none);
    let line = run(&mut none).refusal();
    assert!(line.contains("found no GPU"), "{line}");
    assert!(!cache.path("gpu-time").exists());
}

#[test]
fn unwritable_cache_is_named() {
    let cache = Folder::new();
    fs::write(cache.path("gpu-time"), "a file").unwrap();
    let line = calibrate("unwritable", &cache.path("")).refusal();
    let path = cache.path("gpu-time/calibration.json");
    let start = format!("cannot calibrate: cannot write `{}`: ", path.display());
    assert!(line.starts_with(&start), "{line}");
    let home =
        run(command("no-home", Some(&SimCupti::default()), Path::new("relative"))
            .env_remove("HOME"));
    assert!(home.refusal().contains("set `XDG_CACHE_HOME` or `HOME`"));
}

#[test]
fn only_the_user_may_enter_the_directory() {
    let cache = Folder::new();
    calibrate("private", &cache.path("")).success();
    let mode = fs::metadata(cache.path("gpu-time")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn gpu_whose_kernels_are_not_recorded_is_named() {
    let cache = Folder::new();
    let cupti = SimCupti::default().script("zero=1");
    let out = run(&mut command("zero", Some(&cupti), &cache.path("")));
    assert_eq!((out.code, &*out.stderr), (Some(1), ""), "{}", out.stdout);
    let why = ": not measured: CUPTI recorded too few of the empty kernels";
    assert!(out.stdout.lines().all(|line| line.ends_with(why)), "{}", out.stdout);
    assert!(!cache.path("gpu-time").exists());
}
