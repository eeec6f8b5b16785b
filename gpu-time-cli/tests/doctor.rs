//! Tests of `doctor` on the simulated driver and the simulated NVML.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_nvml::{Script, ScriptedDevice, SimNvml};

use crate::{Folder, Run, run};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor").join(name)
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-time"));
    command.arg("doctor").env_remove("CUDA_VISIBLE_DEVICES");
    command
}

/// Runs `doctor` on two GPUs. `change` scripts the first one.
fn doctor(name: &str, change: impl FnOnce(&mut ScriptedDevice)) -> Run {
    let sim = SimDriver::install(folder(name)).expect("install the simulated driver").devices(2);
    SimNvml::install(sim.dir()).expect("install the simulated NVML");
    let traces = Folder::new();
    let mut command = command();
    sim.apply(&mut command);
    SimNvml::new(Script::calm(2).with(change)).apply(&mut command, &traces.path("nvml"));
    let run = run(&mut command);
    assert!(!traces.path("nvml").exists(), "no setting of a GPU was changed");
    run
}

#[test]
fn lists_driver_and_gpus() {
    let out = doctor("calm", |_| {}).success();
    let has_line = |start: &str| out.lines().any(|line| line.starts_with(start));
    assert!(has_line("driver: CUDA ") && has_line("cuda:0: ") && has_line("cuda:1: "), "{out}");
    assert!(out.contains(" of ") && out.contains(" MHz, ") && out.contains("MIG off"), "{out}");
    assert!(has_line("host"), "{out}");
}

#[test]
fn each_problem_has_a_line_of_advice() {
    let out = doctor("problems", |gpu| {
        gpu.persistence = false;
        gpu.mig = Some(true);
        gpu.reasons = 1.into();
    })
    .success();
    let gpu: Vec<&str> = out
        .lines()
        .skip_while(|line| !line.starts_with("cuda:0: "))
        .skip(1)
        .take_while(|line| line.starts_with("  ! "))
        .collect();
    assert_eq!(gpu.len(), 2, "{out}");
    assert!(gpu.iter().any(|line| line.contains("persistence mode ")), "{out}");
    assert!(gpu.iter().any(|line| line.contains("MIG is on")), "{out}");
}

#[test]
fn driver_is_checked_without_nvml() {
    let sim = SimDriver::install(folder("no-nvml")).expect("install the simulated driver");
    SimNvml::install_broken(sim.dir()).expect("install the broken NVML");
    let mut command = command();
    sim.apply(&mut command);
    let out = run(&mut command).success();
    assert!(out.contains("\nNVML: ") && out.contains("\n  ! clocks, throttling and"), "{out}");
    assert!(out.contains("\ncuda:0: "), "{out}");
}

#[test]
fn no_gpu_exits_with_1() {
    let sim = SimDriver::install(folder("none")).expect("install the simulated driver").devices(0);
    let mut command = command();
    sim.apply(&mut command);
    let none = run(&mut command);
    assert_eq!((none.code, &*none.stderr), (Some(1), ""), "{}", none.stdout);
    assert!(none.stdout.contains("  ! "), "{}", none.stdout);
}
