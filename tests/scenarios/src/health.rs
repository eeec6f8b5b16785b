//! Clocks and environment of the devices in use.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use std::{mem, process, thread};

use cudarc::driver::CudaStream;
use gpu_time::{LockedClocks, gpu_timed, lock_clocks};

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::handler::{self, raise};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("health/run", run),
    ("health/used", used),
    ("health/locked", locked),
    ("health/locked_first", locked_first),
    ("health/stuck", stuck),
    ("health/locked_before_fork", locked_before_fork),
    ("health/signal", signal),
    ("health/signal_after", signal_after),
    ("health/own_handler_first", own_handler_first),
    ("health/own_handler_later", own_handler_later),
    ("health/refused", refused),
    ("health/locked_twice", locked_twice),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

fn five(gpu: &Gpu) {
    let spin = gpu.spin("health::timed");
    for _ in 0..5 {
        timed(&gpu.stream, &spin).unwrap();
    }
    gpu.synchronize();
}

/// Uses the number of devices given by the argument.
fn run(arguments: &[String]) {
    let devices: usize = arguments[0].parse().unwrap();
    (0..devices).for_each(|ordinal| five(&Gpu::at(ordinal)));
    tally::print();
}

/// Uses a device for long enough to read twice how far it is in use.
fn used(_: &[String]) {
    let gpu = Gpu::new();
    five(&gpu);
    thread::sleep(Duration::from_millis(300));
    five(&gpu);
    tally::print();
}

/// Locks the clocks through the NVML stand-in, never through the real NVML.
fn lock(mhz: u32) -> Result<LockedClocks, String> {
    assert!(is_stand_in(), "tests must not change the clocks of a real GPU");
    let locked = lock_clocks(mhz).map_err(|error| error.to_string());
    for (device, mhz) in locked.iter().flat_map(LockedClocks::sm_mhz) {
        tally::fact(device, mhz);
    }
    locked
}

/// Returns `true` if the runtime loads the stand-in as its NVML library.
fn is_stand_in() -> bool {
    // SAFETY: the names end in NUL; the library may be loaded at any time and stays loaded.
    unsafe {
        let library = libc::dlopen(c"libnvidia-ml.so.1".as_ptr(), libc::RTLD_NOW);
        !library.is_null() && !libc::dlsym(library, c"gpu_time_sim_nvml".as_ptr()).is_null()
    }
}

/// Appends a line from the scenario to the stand-in's trace.
fn mark(line: &str) {
    let path = std::env::var_os("GPU_TIME_TEST_SIM_NVML_TRACE").expect("the trace is configured");
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// Keeps the guard alive until the end given by the argument.
fn locked(arguments: &[String]) {
    let gpu = Gpu::new();
    let guard = lock(1500).unwrap();
    five(&gpu);
    tally::print();
    mark("worked");
    match arguments[0].as_str() {
        "drop" => drop(guard),
        "panic" => panic!("intentional panic"),
        "exit" => process::exit(7),
        "forget" => mem::forget(guard),
        other => panic!("unknown end `{other}`"),
    }
    mark("main returns");
}

/// A thread hangs while locking the clocks.
fn stuck(_: &[String]) {
    five(&Gpu::new());
    thread::spawn(|| lock(1500));
    let path = std::env::var_os("GPU_TIME_TEST_SIM_NVML_TRACE").expect("the trace is configured");
    while !std::fs::read_to_string(&path).is_ok_and(|trace| trace.contains("hangs")) {
        thread::yield_now();
    }
    tally::print();
}

/// Times nothing, and does not even initialise CUDA.
fn locked_first(_: &[String]) {
    mem::forget(lock(1500).unwrap());
    tally::print();
}

fn locked_before_fork(_: &[String]) {
    let guard = lock(1500).unwrap();
    child::assert_exits(child::fork(|| process::exit(3)), 3);
    let child = child::fork(|| {
        raise(libc::SIGTERM);
        process::exit(4);
    });
    child::assert_killed(child, libc::SIGTERM);
    mark("children are gone");
    drop(guard);
    tally::print();
}

/// Ends the process with a signal while the guard is alive.
fn signal(arguments: &[String]) {
    let _guard = lock(1500).unwrap();
    tally::print();
    raise(arguments[0].parse().unwrap());
    loop {
        thread::park();
    }
}

/// Ends the process with a signal after the guard has been dropped.
fn signal_after(_: &[String]) {
    drop(lock(1500).unwrap());
    tally::print();
    mark("dropped");
    raise(libc::SIGTERM);
    loop {
        thread::park();
    }
}

fn survive_two_signals(guard: LockedClocks) {
    for _ in 0..2 {
        raise(libc::SIGTERM);
    }
    while handler::handled() < 2 {
        thread::yield_now();
    }
    // Leaves time for an incorrect reaction to the forwarded signals.
    thread::sleep(std::time::Duration::from_millis(50));
    mark("survived");
    drop(guard);
    tally::fact("handled", handler::handled());
    tally::fact("previous", handler::has_previous());
    tally::fact("still_handled", handler::is_installed(libc::SIGTERM));
    tally::print();
}

fn own_handler_first(_: &[String]) {
    handler::install(libc::SIGTERM);
    survive_two_signals(lock(1500).unwrap());
}

/// The handler forwards to the previously installed one, as signal libraries do.
fn own_handler_later(_: &[String]) {
    let guard = lock(1500).unwrap();
    handler::install(libc::SIGTERM);
    survive_two_signals(guard);
}

/// Locking the clocks fails, and the program continues.
fn refused(arguments: &[String]) {
    let mhz = arguments[0].parse().unwrap();
    let devices: Vec<Gpu> = (0..2).map(Gpu::at).collect();
    devices.iter().for_each(five);
    let error = lock(mhz).map(|_| ()).unwrap_err();
    tally::fact("error", error);
    mark("refused");
    tally::print();
}

fn locked_twice(_: &[String]) {
    let guard = lock(1500).unwrap();
    tally::fact("error", lock(1200).map(|_| ()).unwrap_err());
    drop(guard);
    drop(lock(1200).unwrap());
    tally::print();
}
