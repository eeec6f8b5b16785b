//! `doctor`, on the simulated driver and the stand-in for NVML.

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

/// With two GPUs, the first one scripted so.
fn examined(name: &str, change: impl FnOnce(&mut ScriptedDevice)) -> Run {
    let sim =
        SimDriver::install(folder(name)).expect("the simulated driver is installed").devices(2);
    SimNvml::install(sim.dir()).expect("the stand-in for NVML is installed");
    let traces = Folder::new();
    let mut command = command();
    sim.apply(&mut command);
    SimNvml::new(Script::calm(2).with(change)).apply(&mut command, &traces.path("nvml"));
    let run = run(&mut command);
    assert!(!traces.path("nvml").exists(), "nothing was set");
    run
}

#[test]
fn two_calm_gpus_are_fine() {
    let out = examined("calm", |_| {}).fine();
    let begins = |start: &str| out.lines().any(|line| line.starts_with(start));
    assert!(begins("driver: CUDA ") && begins("cuda:0: ") && begins("cuda:1: "), "{out}");
    assert!(out.contains(" of ") && out.contains(" MHz, ") && out.contains("MIG off"), "{out}");
    assert!(begins("host"), "{out}");
}

#[test]
fn each_thing_has_its_line_of_advice() {
    let out = examined("wrong", |gpu| {
        gpu.persistence = false;
        gpu.mig = Some(true);
        gpu.reasons = 1.into();
    })
    .fine();
    let gpu: Vec<&str> = out
        .lines()
        .skip_while(|line| !line.starts_with("cuda:0: "))
        .skip(1)
        .take_while(|line| line.starts_with("  ! "))
        .collect();
    assert_eq!(gpu.len(), 2, "{out}");
    assert!(gpu.iter().any(|line| line.contains("persistence mode is off")), "{out}");
    assert!(gpu.iter().any(|line| line.contains("MIG is on")), "{out}");
}

#[test]
fn without_nvml_the_driver_is_still_looked_at() {
    let sim = SimDriver::install(folder("no-nvml")).expect("the simulated driver is installed");
    SimNvml::install_broken(sim.dir()).expect("it is installed");
    let mut command = command();
    sim.apply(&mut command);
    let out = run(&mut command).fine();
    assert!(out.contains("\nNVML: ") && out.contains("\n  ! clocks, throttling and"), "{out}");
    assert!(out.contains("\ncuda:0: "), "{out}");
}

#[test]
fn without_a_gpu_it_says_so() {
    let sim =
        SimDriver::install(folder("none")).expect("the simulated driver is installed").devices(0);
    let mut command = command();
    sim.apply(&mut command);
    let none = run(&mut command);
    assert_eq!((none.code, &*none.stderr), (Some(1), ""), "{}", none.stdout);
    assert!(none.stdout.contains("  ! "), "{}", none.stdout);
}
