//! A program on the simulated driver. It is this test itself, run once more.

use std::env;
use std::process::{Command, Output};

use cudarc::driver::{CudaContext, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;

const PTX: &str = ".version 8.0\n.target sm_70\n.visible .entry mine()\n{ ret; }\n";

/// The program under test, which the other tests run.
#[test]
#[ignore = "needs a driver"]
fn program() {
    let context = CudaContext::new(0).unwrap();
    let devices = CudaContext::device_count().unwrap();
    let stream = context.new_stream().unwrap();
    let kernel = context.load_module(Ptx::from_src(PTX)).unwrap().load_function("mine").unwrap();
    let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    let start = stream.record_event(timed).unwrap();
    // SAFETY: the kernel has no parameters.
    #[allow(unsafe_code)]
    unsafe { stream.launch_builder(&kernel).launch(LaunchConfig::for_num_elems(1)) }.unwrap();
    let stop = stream.record_event(timed).unwrap();
    let ms = start.elapsed_ms(&stop).unwrap();
    let has_cupti = env::split_paths(&env::var_os("LD_LIBRARY_PATH").unwrap())
        .any(|folder| folder.join("libcupti.so.13").is_file());
    println!("{devices} GPUs, {:.0} us, CUPTI: {has_cupti}", 1e3 * ms);
    assert!(ms < 1.0, "as the exit code");
}

fn run(options: &[&str], times: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("times");
    std::fs::write(&file, times).unwrap();
    let mut sim = Command::new(env!("CARGO_BIN_EXE_gpu-time-sim"));
    sim.arg("--times").arg(file).args(options).arg(env::current_exe().unwrap());
    sim.args(["--ignored", "--exact", "program", "--nocapture"]).output().unwrap()
}

#[test]
fn kernel_takes_the_time_of_the_file() {
    let printed = |options: &[&str], times: &str| {
        let output = run(options, times);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let [short, long] = ["mine = 5us", "mine = 45us"].map(|times| {
        let out = printed(&["--gpus", "2"], times);
        assert!(out.contains("2 GPUs, ") && out.contains(" CUPTI: true"), "{out}");
        let us = out.split("GPUs, ").nth(1).unwrap().split(' ').next().unwrap();
        us.parse::<i32>().unwrap()
    });
    assert_eq!(long - short, 40);
}

#[test]
fn exit_code_is_that_of_the_program() {
    assert_eq!(run(&[], "mine = 2ms").status.code(), Some(101));
}

#[test]
fn mistakes_are_one_line() {
    for (options, times, expected) in [
        (&["--gpu"][..], "", "gpu-time-sim: usage: gpu-time-sim [--times FILE]"),
        (&[], "mine", "times`: line 1: expected a kernel and its time, such as `saxpy = 5us`"),
    ] {
        let output = run(options, times);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(output.status.code(), Some(2));
    }
}
